"use strict";
// Everything that is shown goes through here: text is text, whatever a provider's page has put into it.

const byId = (id) => document.getElementById(id);

/** An element with attributes and children; text is never read as markup. */
function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== "" && child !== false));
  return made;
}

/** A link to a page of the web; anything else is text. */
function link(address, text) {
  let url = null;
  try { url = new URL(address); } catch { return text; }
  if (url.protocol !== "https:" && url.protocol !== "http:") return text;
  return el("a", { href: url.href, rel: "noopener noreferrer" }, text);
}

/** A table. Columns: {name, title, n: numbers, head: names the row}; a row: cells in their order, or {cells, class}. */
function tableOf(caption, columns, rows, name) {
  const headings = columns.map((c) => el("th", { scope: "col", class: classes(c.n && "n", c.name) }, c.title));
  const body = rows.map((row) => {
    const cells = Array.isArray(row) ? row : row.cells;
    return el("tr", { class: row.class || null }, cells.map((cell, place) => {
      const c = columns[place];
      return el(c.head ? "th" : "td", { scope: c.head ? "row" : null, class: classes(c.n && "n", c.name, c.long && "long") }, cell);
    }));
  });
  const made = el("table", { class: name || null }, el("caption", {}, caption), el("thead", {}, el("tr", {}, headings)), el("tbody", {}, body));
  return el("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": caption }, made);
}

function classes(...names) {
  return names.filter(Boolean).join(" ") || null;
}

function show(id, ...children) {
  byId(id).replaceChildren(...children.flat(Infinity).filter(Boolean));
}

const shownFor = new Map();

/** Show a section again only where what it depends on has changed. */
function whereChanged(name, dependsOn, showIt) {
  const key = dependsOn.join(" ");
  if (shownFor.get(name) === key) return;
  shownFor.set(name, key);
  showIt();
}

/** Fill a select with [value, label] or {group, options}; returns the value that is chosen. */
function options(select, choices, chosen) {
  const key = JSON.stringify(choices);
  if (select.choices === key) {
    select.value = chosen;
    return select.value;
  }
  select.choices = key;
  const option = ([value, label]) => el("option", { value, selected: value === chosen }, label);
  select.replaceChildren(...choices.map((c) => (Array.isArray(c) ? option(c) : el("optgroup", { label: c.group }, c.options.map(option)))));
  select.value = chosen;
  return select.value;
}
