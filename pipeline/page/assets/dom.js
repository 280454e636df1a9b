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

/** A table of cells. Columns: {title, n: numbers, head: names the row, long}. */
function tableOf(caption, columns, rows) {
  const headings = columns.map((c) => el("th", { scope: "col", class: classes(c.n && "n") }, c.title));
  const body = rows.map((cells) => el("tr", {}, cells.map((cell, place) => {
    const c = columns[place];
    return el(c.head ? "th" : "td", { scope: c.head ? "row" : null, class: classes(c.n && "n", c.long && "long") }, cell);
  })));
  const made = el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, headings)), el("tbody", {}, body));
  return el("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": caption }, made);
}

function classes(...names) {
  return names.filter(Boolean).join(" ") || null;
}

function show(id, ...children) {
  byId(id).replaceChildren(...children.flat(Infinity).filter(Boolean));
}

const shownOnce = new Set();

/** Show a view whose contents never change. */
function once(name, showIt) {
  if (shownOnce.has(name)) return;
  shownOnce.add(name);
  showIt();
}

/** Fill a select with [value, label]; returns the value that is chosen. */
function options(select, choices, chosen) {
  const key = JSON.stringify(choices);
  if (select.choices !== key) {
    select.choices = key;
    select.replaceChildren(...choices.map(([value, label]) => el("option", { value }, label)));
  }
  select.value = chosen;
  return select.value;
}
