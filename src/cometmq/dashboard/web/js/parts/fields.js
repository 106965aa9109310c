// Labelled inputs. A `Form` reads them all, and shows a server's objection at the field that it is about.

import { freshId, h, replace } from "../core/dom.js";

export class Form {
  constructor() {
    this.fields = new Map();
  }

  /** `type` is that of an input, or textarea, select (with `options` [[value, text]]), check. */
  field(name, label, { type = "text", value = "", hint = "", options = [], ...rest } = {}) {
    const id = freshId(name);
    const wrong = h("span.wrong", { id: `${id}-wrong` });
    const described = { aria: { describedby: `${id}-hint ${id}-wrong` } };
    const input = this.#input(id, { type, value, options, ...described, ...rest });
    this.fields.set(name, { input, wrong, type });
    const hintLine = h("span.hint", { id: `${id}-hint` }, hint);
    if (type === "check") return h("div.field", {}, h("div.check", {}, input, h("label", { for: id }, label)), hintLine, wrong);
    return h("div.field", {}, h("label", { for: id }, label), input, hintLine, wrong);
  }

  #input(id, { type, value, options, ...rest }) {
    if (type === "select") {
      return h("select", { id, ...rest }, options.map(([key, text]) => h("option", { value: key, selected: key === value }, text)));
    }
    if (type === "textarea") return h("textarea", { id, rows: 6, spellcheck: "false", value, ...rest });
    if (type === "check") return h("input", { id, type: "checkbox", checked: value, ...rest });
    return h("input", { id, type, value, autocomplete: "off", ...rest });
  }

  input(name) {
    return this.fields.get(name).input;
  }

  value(name) {
    const { input, type } = this.fields.get(name);
    if (type === "check") return input.checked;
    if (type === "number") return input.value === "" ? null : Number(input.value);
    return type === "textarea" || type === "password" ? input.value : input.value.trim();
  }

  values() {
    return Object.fromEntries([...this.fields.keys()].map((name) => [name, this.value(name)]));
  }

  /** Run something; an objection to one field is shown there as well. */
  async checked(action) {
    for (const { wrong, input } of this.fields.values()) {
      replace(wrong);
      input.removeAttribute("aria-invalid");
    }
    try {
      return await action();
    } catch (error) {
      const field = this.fields.get(error.field);
      if (field) {
        replace(field.wrong, error.message);
        field.input.setAttribute("aria-invalid", "true");
        field.input.focus();
      }
      throw error;
    }
  }
}
