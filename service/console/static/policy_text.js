// Policies as text: where a path is in it, and another guarantee in place of its own.

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** `schema.quasi.'a.b'.min` or `schema.public[0]` as its parts; places in lists are left out. */
function pathParts(path) {
  const parts = path.match(/'[^']*'|[^.[\]']+|\[\d+\]/g) ?? [];
  return parts.filter((part) => !part.startsWith("[")).map((part) => part.replaceAll("'", ""));
}

/**
 * Start and end of the deepest part of a path that the text has. Each key is looked for after the one before and
 * within its block: the lines that are indented deeper. Good enough to point at; nothing is parsed.
 */
export function locate(text, path) {
  let [from, until, found] = [0, text.length, null];
  for (const part of pathParts(path)) {
    const key = new RegExp(`(^|[\\s{,])(["']?)${escaped(part)}\\2\\s*:`, "m");
    const match = key.exec(text.slice(from, until));
    if (!match) break;
    const start = from + match.index + match[1].length;
    found = { start, end: from + match.index + match[0].length };
    until = Math.min(until, blockEnd(text, start));
    from = found.end;
  }
  return found;
}

function blockEnd(text, keyStart) {
  const lineStart = text.lastIndexOf("\n", keyStart - 1) + 1;
  const indent = /^ */.exec(text.slice(lineStart))[0].length;
  const lineEnd = text.indexOf("\n", keyStart);
  if (lineEnd < 0) return text.length;
  const next = new RegExp(`\\n {0,${indent}}[^\\s#}\\]]`).exec(text.slice(lineEnd));
  return next ? lineEnd + next.index : text.length;
}

/** Last parts of the names of the hierarchy files that a policy asks for. */
export function namedFiles(text) {
  const named = text.matchAll(/hierarchy["']?\s*:\s*["']?([^"'{}[\],\s]+)/g);
  return new Set([...named].map(([, path]) => path.split(/[\\/]/).at(-1)));
}

/** The text with this guarantee instead of its own. Policies in JSON and in YAML's block style; else null. */
export function withGuarantee(text, guarantee) {
  if (/^\s*\{/.test(text)) {
    try {
      return JSON.stringify({ ...JSON.parse(text), guarantee }, null, 2);
    } catch {
      return null;
    }
  }
  const block = /^guarantee[ \t]*:.*(?:\n(?:[ \t}\]#].*|[ \t]*(?=\n|$)))*/m;
  const own = `guarantee: ${JSON.stringify(guarantee)}`;
  return block.test(text) ? text.replace(block, () => own) : `${text.trimEnd()}\n${own}\n`;
}

/** JSON for people: what fits on a line stays on it. */
export function pretty(value, indent = "") {
  const flat = JSON.stringify(value);
  if (flat.length + indent.length < 100 || value === null || typeof value !== "object") return flat;
  const deeper = `${indent}  `;
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  const parts = Array.isArray(value)
    ? value.map((one) => pretty(one, deeper))
    : Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}: ${pretty(one, deeper)}`);
  return `${open}\n${parts.map((part) => deeper + part).join(",\n")}\n${indent}${close}`;
}
