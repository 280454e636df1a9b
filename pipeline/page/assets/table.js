"use strict";
// Tables that sort, filter, choose their columns and go to a CSV file. Columns: {name, title, n: numbers, head: names the
// row, value: of a row, for sorting and CSV, show: of a row, where the cell is not the value, hidden: not shown at first}.

const SHORT = 15;

/** How each table of the page is looked at: {sort, down, find, columns, every}. */
const looks = {};

const lookOf = (name) => (looks[name] ??= { sort: null, down: false, find: "", columns: null, every: false });

const shownColumns = (name, columns) => columns.filter((c) => (lookOf(name).columns ? lookOf(name).columns.includes(c.name) : !c.hidden));

const textOf = (value) => (value === null || value === undefined ? "" : String(value));

/** The rows that a table shows: those with every word that is looked for, in the order asked for. */
function lookedFor(name, columns, rows) {
  const { find, sort, down } = lookOf(name);
  const wanted = find.toLowerCase().split(/[\s,]+/).filter(Boolean);
  const found = wanted.length
    ? rows.filter((row) => { const text = columns.map((c) => textOf(c.text ? c.text(row) : c.value(row))).join(" ").toLowerCase(); return wanted.every((word) => text.includes(word)); })
    : [...rows];
  const column = columns.find((c) => c.name === sort);
  if (!column) return found;
  const compare = (a, b) => {
    const [one, other] = [column.value(a), column.value(b)];
    // What is not known comes last, either way.
    if (one === null || one === undefined || one === "") return other === null || other === undefined || other === "" ? 0 : 1;
    if (other === null || other === undefined || other === "") return -1;
    const order = typeof one === "number" ? one - other : String(one).localeCompare(String(other), "en", { numeric: true });
    return down ? -order : order;
  };
  return found.sort(compare);
}

/** A number in plain decimals: whole digits, and fractions to at least six digits and the hundredth of a cent. */
function plainNumber(number) {
  const decimals = Math.min(20, Math.max(4, 5 - Math.floor(Math.log10(Math.abs(number) || 1))));
  return number.toFixed(decimals).replace(/\.?0+$/, "");
}

/** A cell of a CSV file; text that a spreadsheet would run as a formula begins with an apostrophe. */
function csvCell(value) {
  if (typeof value === "number") return plainNumber(value);
  const text = textOf(value);
  const safe = new RegExp(D.formula_start, "u").test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** The cells of a row for a CSV file, by name: a column may have several. */
const csvOfRow = (columns, row) => Object.assign({}, ...columns.map((c) => (c.csv ? c.csv(row) : { [c.name]: c.value(row) })));

function csvOf(columns, rows) {
  const each = rows.map((row) => csvOfRow(columns, row));
  const names = each.length ? Object.keys(each[0]) : columns.map((c) => c.name);
  const lines = [names.map(csvCell), ...each.map((row) => names.map((name) => csvCell(row[name])))];
  return `\ufeff${lines.map((line) => line.join(",")).join("\r\n")}\r\n`;
}

/** Hand a text to the reader as a file. */
function download(file, text) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  el("a", { href: address, download: file }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

/** Fill a place with a table: {caption, columns, rows, rowClass}. `changed` is told when the reader looks at it in another
 * way. A place that has this table keeps its controls, and whoever types in them. */
function fillTable(place, name, table, changed) {
  if (place.table?.name === name) {
    place.table.given = table;
    refill(place);
    return;
  }
  const body = el("div", {});
  place.table = { name, given: table, changed, body };
  place.replaceChildren(toolsOf(place), body);
  refill(place);
}

/** Show what a place's table has, as its reader looks at it. */
function refill(place) {
  const { name, body, given: { caption, columns, rows, rowClass = () => null } } = place.table;
  const look = lookOf(name);
  const shown = shownColumns(name, columns);
  const found = lookedFor(name, columns, rows);
  const some = look.every ? found : found.slice(0, SHORT);
  const lines = some.map((row) => el("tr", { class: rowClass(row) }, shown.map((c) => {
    const cell = c.show ? c.show(row) : textOf(c.value(row));
    return el(c.head ? "th" : "td", { scope: c.head ? "row" : null, class: classes(c.n && "n", c.name, c.long && "long"), "data-title": c.title }, cell);
  })));
  const counted = found.length < rows.length ? ` ${COMMAS.format(found.length)} of ${COMMAS.format(rows.length)} found.` : "";
  const made = el("table", { class: "grid" }, el("caption", {}, caption, counted), el("thead", {}, el("tr", {}, shown.map((c) => headOf(place, c)))), el("tbody", {}, lines));
  body.replaceChildren(el("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": caption }, made), ...(found.length > some.length ? [moreOf(place, found.length)] : []));
}

/** The heading of a column, which sorts by it: up, down, and as it was. */
function headOf(place, column) {
  const { name, changed, body } = place.table;
  const look = lookOf(name);
  const isSorted = look.sort === column.name;
  const button = el("button", { type: "button", class: "sort" }, column.title, isSorted && el("span", { "aria-hidden": "true" }, look.down ? " \u2193" : " \u2191"));
  button.addEventListener("click", () => {
    Object.assign(look, isSorted && look.down ? { sort: null, down: false } : { sort: column.name, down: isSorted });
    changed();
    refill(place);
    body.querySelector(`th.${column.name} button`)?.focus();
  });
  return el("th", { scope: "col", class: classes(column.n && "n", column.name), "aria-sort": isSorted ? (look.down ? "descending" : "ascending") : null }, button);
}

function moreOf(place, count) {
  const more = el("button", { type: "button", class: "more" }, `Show all ${COMMAS.format(count)}`);
  more.addEventListener("click", () => {
    lookOf(place.table.name).every = true;
    refill(place);
    place.querySelector(".scroll").focus();
  });
  return el("p", {}, more);
}

/** The controls above a table: find, columns, CSV. */
function toolsOf(place) {
  const { name, given: { columns }, changed } = place.table;
  const look = lookOf(name);
  const find = el("input", { type: "search", spellcheck: "false", value: look.find });
  find.addEventListener("input", () => { look.find = find.value; changed(); refill(place); });
  const boxes = columns.map((c) => {
    const box = el("input", { type: "checkbox", checked: shownColumns(name, columns).includes(c) });
    box.addEventListener("change", () => {
      const on = new Set(shownColumns(name, columns).map((each) => each.name));
      if (box.checked) on.add(c.name); else on.delete(c.name);
      look.columns = columns.map((each) => each.name).filter((each) => on.has(each));
      changed();
      refill(place);
    });
    return el("label", { class: "check" }, box, c.title);
  });
  const csv = el("button", { type: "button" }, "CSV");
  csv.addEventListener("click", () => {
    const { columns: all, rows } = place.table.given;
    download(`gpufare-${name}.csv`, csvOf(shownColumns(name, all), lookedFor(name, all, rows)));
  });
  return el("div", { class: "controls" }, el("label", {}, "Find ", find), el("details", { class: "chooser" }, el("summary", {}, "Columns"), el("div", { class: "boxes" }, boxes)), csv);
}
