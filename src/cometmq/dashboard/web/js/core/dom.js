// Elements from plain calls. Text always becomes a text node, so no name or body from a broker is ever read as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** `h("a.badge", {href, onclick, aria: {label}, data: {key}}, "text", child, [more])` */
export function h(name, props = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.classList.add(...classes);
  return fill(element, props, children);
}

/** The same for parts of a drawing; classes are given as `class`. */
export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(element, props, children) {
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "aria" || key === "data") {
      for (const [name, text] of Object.entries(value)) {
        if (text !== undefined && text !== null) element.setAttribute(`${key}-${name}`, text);
      }
    } else if (key === "value" && "value" in element) element.value = value;
    else if (key === "checked" || key === "disabled" || key === "selected") element[key] = Boolean(value);
    // The content security policy forbids style attributes; a property set by a script is none.
    else if (key === "style") for (const [name, text] of Object.entries(value)) element.style.setProperty(name, text);
    else element.setAttribute(key, value === true ? "" : value);
  }
  append(element, children);
  return element;
}

export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

export function replace(element, ...children) {
  element.replaceChildren();
  return append(element, children);
}

let lastId = 0;

/** An id for a label and what it labels. */
export function freshId(prefix) {
  lastId += 1;
  return `${prefix}-${lastId}`;
}
