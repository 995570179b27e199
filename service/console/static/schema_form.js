// A form for what a JSON schema describes: numbers, words, switches, choices, and mappings of these.

import { field, h, newId } from "./dom.js";

/** Fields for the properties of a schema. `read` gives what was filled in; what is left empty is left out. */
export function schemaForm(schema, given = {}) {
  return mapping(schema, schema.$defs ?? {}, given ?? {}, true);
}

/** What may be left out as a whole requires nothing. */
function mapping(schema, definitions, given, asked) {
  const required = new Set(asked ? (schema.required ?? []) : []);
  const parts = Object.entries(schema.properties ?? {}).map(([name, own]) => {
    const part = partOf(name, own, definitions, given?.[name], required.has(name));
    return { name, ...part };
  });
  return {
    elements: parts.map((part) => part.element),
    read: () =>
      Object.fromEntries(parts.map((part) => [part.name, part.read()]).filter(([, value]) => value !== undefined)),
  };
}

/** The forms that a schema allows, without null: a list of plain schemas. */
function forms(schema, definitions) {
  if (schema.$ref) return forms(definitions[schema.$ref.split("/").at(-1)], definitions);
  if (schema.anyOf) return schema.anyOf.flatMap((one) => forms(one, definitions));
  return schema.type === "null" ? [] : [schema];
}

function partOf(name, schema, definitions, given, required) {
  const allowed = forms(schema, definitions);
  const hint = schema.description ?? allowed[0].description;
  const standard = schema.default ?? undefined;
  if (allowed.length > 1) return choiceOfForms(name, allowed, definitions, given, required, hint);
  const [only] = allowed;
  if (only.properties) return group(name, only, definitions, given, required, hint);
  return simple(name, only, given ?? standard, required, hint);
}

function group(name, schema, definitions, given, required, hint) {
  const inner = mapping(schema, definitions, given, required);
  const read = () => {
    const value = inner.read();
    return Object.keys(value).length ? value : undefined;
  };
  return {
    element: h("fieldset", {}, h("legend", {}, name), hint ? h("small", {}, hint) : null, inner.elements),
    read,
  };
}

/** A bare value or a mapping, say: one of them is shown at a time. */
function choiceOfForms(name, allowed, definitions, given, required, hint) {
  const mappingGiven = given !== null && typeof given === "object";
  const algorithm = (one) => one.properties?.algorithm?.const;
  const first = Math.max(
    allowed.findIndex((one) => Boolean(one.properties) === mappingGiven && algorithm(one) === given?.algorithm),
    0,
  );
  const bodies = allowed.map((one, place) => {
    const own = place === first ? given : undefined;
    return one.properties ? group(name, one, definitions, own, required, hint) : simple(name, one, own, required, hint);
  });
  const chosen = h(
    "select",
    { id: newId("form") },
    allowed.map((one, place) =>
      h(
        "option",
        { value: place, selected: place === first },
        algorithm(one) ?? (one.properties ? "in detail" : "a number"),
      ),
    ),
  );
  const show = () =>
    bodies.forEach((body, place) => {
      body.element.hidden = place !== Number(chosen.value);
      body.element.disabled = body.element.hidden;
    });
  chosen.addEventListener("change", show);
  const element = h(
    "div",
    { className: "forms" },
    field(`${name}, given as`, chosen),
    bodies.map((body) => body.element),
  );
  show();
  return { element, read: () => bodies[Number(chosen.value)].read() };
}

function simple(name, schema, given, required, hint) {
  if (schema.type === "boolean") return toggle(name, given, hint);
  if (schema.enum || "const" in schema) return choice(name, schema, given, hint);
  if (schema.type === "integer" || schema.type === "number") return numeric(name, schema, given, required, hint);
  return json(name, given, hint);
}

function toggle(name, given, hint) {
  const input = h("input", { type: "checkbox", checked: Boolean(given) });
  return { element: field(name, input, hint), read: () => input.checked };
}

function choice(name, schema, given, hint) {
  const options = schema.enum ?? [schema.const];
  const input = h(
    "select",
    {},
    options.map((value) => h("option", { value, selected: value === given }, value)),
  );
  return { element: field(name, input, hint), read: () => input.value };
}

function numeric(name, schema, given, required, hint) {
  const input = h("input", {
    type: "number",
    required,
    step: schema.type === "integer" ? 1 : "any",
    min: schema.minimum ?? schema.exclusiveMinimum,
    max: schema.maximum ?? schema.exclusiveMaximum,
    value: given ?? "",
    placeholder: required ? "" : "not asked for",
  });
  return { element: field(name, input, hint), read: () => (input.value === "" ? undefined : Number(input.value)) };
}

/** Anything else is written as JSON. */
function json(name, given, hint) {
  const input = h("input", {
    type: "text",
    value: given === undefined ? "" : JSON.stringify(given),
    placeholder: "JSON",
    spellcheck: false,
  });
  const read = () => {
    if (!input.value.trim()) return undefined;
    try {
      return JSON.parse(input.value);
    } catch {
      input.setCustomValidity("This is not JSON.");
      return undefined;
    }
  };
  input.addEventListener("input", () => {
    input.setCustomValidity("");
    read();
  });
  return { element: field(name, input, hint), read };
}
