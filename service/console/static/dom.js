// Makes elements. Text only ever becomes text, never markup.

const SVG = "http://www.w3.org/2000/svg";

function made(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && !(element instanceof SVGElement) && name !== "list") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const h = (tag, attributes = {}, ...children) => made(document.createElement(tag), attributes, children);

export const svg = (tag, attributes = {}, ...children) =>
  made(document.createElementNS(SVG, tag), attributes, children);

export const byId = (id) => document.getElementById(id);

let lastId = 0;
export const newId = (name) => `${name}-${++lastId}`;

/** Text that changes only when it has to, so that screen readers and selections are left in peace. */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** A sentence for those who listen instead of looking. */
export function say(sentence) {
  byId("said").textContent = sentence;
}

/** A label, a field and what is to be known about it. */
export function field(label, input, hint) {
  input.id ||= newId("field");
  const note = hint ? h("small", { id: `${input.id}-hint` }, hint) : null;
  if (note) input.setAttribute("aria-describedby", note.id);
  return h("div", { className: "field" }, h("label", { htmlFor: input.id }, label), input, note);
}

export const button = (text, onclick, kind = "quiet") =>
  h("button", { type: "button", className: kind, onclick }, text);

/** Make a button of what cannot be undone: it wants a second press, before anything else is done. */
export function twice(made, warning, action) {
  const text = made.textContent;
  const asking = `Really ${text.toLowerCase()}?`;
  const calm = () => (made.textContent = text);
  made.addEventListener("blur", calm);
  made.addEventListener("click", () => {
    if (made.textContent === asking) {
      calm();
      action();
      return;
    }
    made.textContent = asking;
    made.focus(); // Not every browser gives it to a button that is pressed.
    say(warning);
  });
  return made;
}

/** A plain table; cells are texts or elements. `caption` is for those who listen. */
export function table(caption, head, rows) {
  return h(
    "div",
    { className: "scroll" },
    h(
      "table",
      {},
      h("caption", { className: "hidden" }, caption),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          head.map((name) => h("th", { scope: "col" }, name)),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map(([first, ...rest]) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, first),
            rest.map((cell) => h("td", {}, cell)),
          ),
        ),
      ),
    ),
  );
}
