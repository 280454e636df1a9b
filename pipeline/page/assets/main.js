"use strict";
// What the reader asks for: in the form, in the address, and on the page. The address has the whole job and the view, so
// that a link shows the same, and Back undoes a change.

const VIEWS = { job: "Your job", prices: "Prices per GPU", error: "How wrong", sources: "Sources", audit: "What guides claim", method: "Method" };
const DEFAULT_MODEL = "llama-3.1-8b";
const OF_VIEWS = ["card", "other", "where", "price", "verdict"];

/** What is shown: the view, the job as it was asked for (by setting, as typed), and the choices of the other views. */
let state = { view: "job", asked: {} };

/** The job of the state and its ranking; without them if it is refused or beyond the page. */
let current = {};

/** The address of the same job with other choices of a view. */
function addressOf(choices) {
  const { view = "job", ...others } = choices;
  const asked = D.settings.map(({ setting }) => [setting, state.asked[setting]]);
  const unknown = Object.entries(state.asked).filter(([name]) => !D.settingOf.has(name));
  const kept = [["view", view === "job" ? null : view], ...asked, ...unknown, ...Object.entries(others)].filter(([, value]) => value !== undefined && value !== null && value !== "");
  return `#${new URLSearchParams(kept)}`;
}

const choicesOfViews = () => Object.fromEntries(OF_VIEWS.map((name) => [name, state[name]]));

/** The address of the state, with how the tables of its view are looked at. */
function addressOfState() {
  const table = lookOf(TABLE_OF[state.view] ?? "");
  const look = { sort: table.sort && `${table.sort}${table.down ? "-down" : ""}`, find: table.find, columns: table.columns?.join(",") };
  return addressOf({ view: state.view, ...choicesOfViews(), ...look });
}

const TABLE_OF = { job: "ranking", prices: "prices" };

const TABLE_PLACES = ["ranking-body", "why-not-body", "prices-body", "card-prices"];

const writeState = () => history.replaceState(null, "", addressOfState());

function defaultAsked() {
  const model = D.modelOf.has(DEFAULT_MODEL) && D.recipes.model.includes(DEFAULT_MODEL) ? DEFAULT_MODEL : D.recipes.model[0] ?? DEFAULT_MODEL;
  return { model, method: "lora", tokens: "100M" };
}

/** Read the address. What it asks for and no job has is told, and never silently another job. */
function readState() {
  const given = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  const { view, sort, find, columns, ...rest } = given;
  state = { view: Object.hasOwn(VIEWS, view ?? "") ? view : "job", asked: {} };
  const unknown = view !== undefined && view !== state.view ? [`no view ${view}`] : [];
  for (const [name, value] of Object.entries(rest)) {
    if (OF_VIEWS.includes(name)) state[name] = value;
    else state.asked[name] = value;
  }
  if (!Object.keys(state.asked).length) state.asked = defaultAsked();
  for (const [name, known] of Object.entries({ card: D.gpus.gpu_id, other: D.gpus.gpu_id, price: KINDS, verdict: ["all", ...D.claims.verdict] })) {
    if (state[name] !== undefined && !known.includes(state[name])) {
      unknown.push(`no ${name} ${state[name]}`);
      delete state[name];
    }
  }
  byId("unknown").hidden = !unknown.length;
  show("unknown", unknown.length ? `This page has ${unknown.join(", ")}.` : "");
  const table = lookOf(TABLE_OF[state.view] ?? "");
  Object.assign(table, { sort: sort?.replace(/-down$/, "") ?? null, down: Boolean(sort?.endsWith("-down")), find: find ?? "", columns: columns ? columns.split(",") : null });
}

/** Write the job into the form; examples and their tokens stand together. */
function fillForm({ typing = null } = {}) {
  const { asked } = state;
  const tokens = asked.examples !== undefined && asked.tokens === undefined ? `${asked.examples} x ${asked.tokens_per_example ?? ""}` : asked.tokens ?? "";
  for (const field of fields()) {
    // A choice without an empty option shows the default of its setting.
    const open = field.tagName === "SELECT" && field.options[0].value !== "" ? D.settingOf.get(field.name).default_value : "";
    const value = field.name === "tokens" ? tokens : asked[field.name] ?? open;
    if (field.value !== value && field.name !== typing) field.value = value;
    if (field.tagName === "SELECT" && field.value !== value) {
      // What the choices do not have, such as two kinds, is a choice of its own, as long as it is asked for.
      for (const former of field.querySelectorAll("[data-asked]")) former.remove();
      field.append(el("option", { value, "data-asked": true }, value));
      field.value = value;
    }
  }
  const more = [...byId("more").querySelectorAll("[name]")].filter((field) => asked[field.name] !== undefined);
  byId("more-count").textContent = more.length ? ` (${more.length} in use)` : "";
  if (more.length) byId("more").open = true;
}

/** The settings of the work itself, which are no constraints; those of the recipe are marked in the settings. */
const WORK = ["tokens", "examples", "tokens_per_example", "epochs"];

/** The limits in the second row of the form, which a phone shows when one is set. */
const LIMITS = ["kind", "country", "max_hours", "max_usd", "gpus", "tier"];

const fields = () => [...byId("form").querySelectorAll("[name]")];

/** Between a number of examples and the tokens of each: x, of. */
const EACH = /\s*[x\u00d7*]\s+|\s+[x\u00d7*]\s*|(?<=[\dkmb])[x\u00d7*](?=\d)|\s+(?:of|with|at)\s+/i;

/** The job of the form. Settings of the address that the form has no field for stay. */
function askedOfForm(changed) {
  const asked = { ...state.asked };
  for (const field of fields()) {
    const value = field.value.trim();
    if (value) asked[field.name] = value; else delete asked[field.name];
  }
  const [one, other, ...third] = (asked.tokens ?? "").split(EACH);
  delete asked.examples;
  delete asked.tokens_per_example;
  if (other !== undefined) {
    delete asked.tokens;
    Object.assign(asked, { examples: one, tokens_per_example: other.replace(/\s+each$/i, "") }, third.length && changed === "tokens" ? { epochs: third.join(" x ") } : {});
  }
  return asked;
}

/** Show a job; a change of the same field replaces its address, another one adds to the history. */
let changing = null;

function ask(asked, field = null) {
  if (field !== changing && document.documentElement.dataset.settled === undefined) writeState();
  state.asked = Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== undefined && value !== null && value !== ""));
  // Of a change that goes on, the address follows once the typing pauses (see settle).
  if (field === null || field !== changing) history.pushState(null, "", addressOfState());
  changing = field;
  fillForm({ typing: field });
  showView();
}

/** Answer the job, or tell what is wrong with it, or which command answers it. */
function answer() {
  const { asked } = state;
  current = { asked };
  byId("refused").hidden = byId("other-kinds").hidden = true;
  for (const field of fields()) field.removeAttribute("aria-invalid");
  try {
    current.job = jobOf(asked);
    current.found = ranked(current.job);
  } catch (error) {
    if (!(error instanceof Refusal || error instanceof BeyondPage)) throw error;
    current = { asked };
    byId("refused").hidden = false;
    const isBeyond = error instanceof BeyondPage;
    show("refused", capital(error.message), isBeyond ? "; the command gpufare, which wrote this page, plans any job:" : ".");
    for (const field of fields()) field.setAttribute("aria-invalid", String(field.name === error.setting));
    show("job-text");
    show("answer-body", isBeyond ? el("div", { class: "card" }, sharesOf(asked), otherLengths(asked, error)) : null);
  }
}

/** Buttons that ask for a sequence length that the page has plans for. */
function otherLengths(asked, { lengths = [] }) {
  return lengths.length ? el("p", {}, "Or ask this page with sequences of ", lengths.map((length) => {
    const button = el("button", { type: "button" }, COMMAS.format(length));
    button.addEventListener("click", () => ask({ ...asked, seq_len: String(length) }));
    return [button, " "];
  })) : null;
}

let later = null;

const PAUSE_MS = 60;

/** What follows once the typing pauses: the address, the title, the tabs, and what is slower to find out. */
function settle() {
  const { asked, job, found } = current;
  writeState();
  document.title = found?.rows.length && state.view === "job" ? `${money(picksOf(found)[0][1].total)}: ${job.model} ${job.method}, gpufare` : `${VIEWS[state.view]}: gpufare`;
  for (const tab of byId("nav").querySelectorAll("a")) tab.setAttribute("href", addressOf({ ...choicesOfViews(), where: state.where ?? asked.country, view: tab.dataset.view }));
  if (state.view === "job" && found) {
    showOtherKinds(asked, job, found);
    showWhyNot(asked, job, found);
  }
  document.documentElement.setAttribute("data-settled", location.hash);
}

function showView() {
  for (const view of Object.keys(VIEWS)) byId(view).hidden = view !== state.view;
  for (const tab of byId("nav").querySelectorAll("a")) {
    if (tab.dataset.view === state.view) tab.setAttribute("aria-current", "page"); else tab.removeAttribute("aria-current");
  }
  document.documentElement.removeAttribute("data-settled");
  answer();
  const { asked, job, found } = current;
  byId("ranking").hidden = byId("why").hidden = !job;
  if (state.view === "job" && job) {
    showAnswer(asked, job, found);
    showRanking(asked, job, found);
  }
  clearTimeout(later);
  later = setTimeout(settle, PAUSE_MS);
  if (state.view === "prices") showPricesView();
  if (state.view === "error") once("error", showError);
  if (state.view === "sources") once("sources", showSources);
  if (state.view === "audit") {
    byId("verdict").value = state.verdict ?? "all";
    showAudit({ verdict: byId("verdict").value || "all" });
  }
  if (state.view === "method") showMethod();
}

function showPricesView() {
  byId("where").value = state.where ?? "";
  byId("price").value = state.price ?? "";
  showPrices(state);
}

/** Another choice of a view, in the address and on the page. */
function choose(name, value) {
  state[name] = value || undefined;
  if (changing !== name) history.pushState(null, "", addressOfState());
  changing = name;
  settle();
}

function listen() {
  const form = byId("form");
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => ask(askedOfForm(event.target.name), event.target.name));
  form.addEventListener("change", (event) => { if (event.target.tagName === "SELECT") changing = null; });
  form.addEventListener("focusout", () => { changing = null; });
  const isOfWork = (name) => D.settingOf.get(name)?.recipe || WORK.includes(name);
  byId("reset").addEventListener("click", () => ask(Object.fromEntries(Object.entries(state.asked).filter(([name]) => isOfWork(name)))));
  byId("example").addEventListener("change", () => {
    const example = D.examples[Number(byId("example").value)];
    byId("example").value = "";
    if (example) ask(example);
  });
  byId("where").addEventListener("input", () => { choose("where", byId("where").value.trim()); showPrices(state); });
  byId("price").addEventListener("change", () => { choose("price", byId("price").value); showPrices(state); });
  byId("other").addEventListener("change", () => { choose("other", byId("other").value); showPrices(state); });
  byId("verdict").addEventListener("change", () => { choose("verdict", byId("verdict").value); showAudit(state); });
  const moved = () => {
    clearTimeout(later);
    readState();
    changing = null;
    // The address says how tables are looked at, so that their controls are made anew.
    for (const id of TABLE_PLACES) byId(id).table = null;
    fillForm();
    showView();
  };
  addEventListener("popstate", moved);
  document.addEventListener("click", (event) => {
    const inside = event.target.closest("a[href^='#']");
    if (!inside || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (inside.dataset.stay === undefined) {
      history.pushState(null, "", inside.getAttribute("href"));
      moved();
      scrollTo(0, 0);
      return;
    }
    const section = byId(inside.getAttribute("href").slice(1));
    section.scrollIntoView();
    section.focus({ preventScroll: true });
  });
}

/** The choices of the form: models, methods, kinds, places, and the defaults of what is left open. */
function fillChoices() {
  for (const field of fields()) {
    const { default_value: usual } = D.settingOf.get(field.name);
    if (field.tagName === "INPUT" && usual !== null && field.name !== "model") field.placeholder = usual;
  }
  byId("form").elements.max_hours.placeholder = `${D.p.deadline_hours} if possible`;
  const planned = new Set(D.recipes.model);
  byId("models").append(...D.models.filter(({ model }) => planned.has(model)).map(({ model, title }) => el("option", { value: model, label: title })));
  byId("lengths").append(...[...new Set(D.recipes.seq_len)].sort((a, b) => a - b).map((length) => el("option", { value: String(length) })));
  const placed = [...new Set(D.rentals.map((r) => r.country).filter(Boolean))].map((code) => [code, countryName(code)]).sort((a, b) => a[1].localeCompare(b[1]));
  byId("places").append(...[["eu", "European Union"], ["europe", "Europe"], ["north_america", "North America"], ["asia", "Asia"], ...placed].map(([value, label]) => el("option", { value, label })));
  byId("providers").append(...[...new Set(D.rentals.map((r) => r.provider))].sort().map((name) => el("option", { value: name })));
  byId("cards").append(...D.gpus.gpu_id.filter((_, at) => D.gpus.is_rented[at]).map((id) => el("option", { value: id })));
  options(byId("price"), [["", "any"], ...KINDS.map((kind) => [kind, kindWords(kind)])], "");
  options(byId("verdict"), [["all", "All"], ...[...new Set(D.claims.verdict)].sort().map((verdict) => [verdict, verdict])], "all");
  const scenarios = rowsOf(D.scenarios);
  D.examples = scenarios.map(({ title, ...asked }) => Object.fromEntries(Object.entries(asked).filter(([name, value]) => value !== null && !(name === "tokens" && asked.examples !== null) && !(name === "epochs" && value === 1)).map(([name, value]) => [name, String(value)])));
  options(byId("example"), [["", "choose one"], ...scenarios.map(({ title }, n) => [String(n), title])], "");
}

/** The page's answer for scripts: the rows of a job, by the command's settings. Throws with what is wrong with the job. */
globalThis.gpufare = {
  ask(asked) {
    const job = jobOf(asked);
    return ranked(job).rows.map((c) => ({
      rank: c.rank, gpu_id: c.rental.gpu_id, gpu_count: c.rental.gpu_count, node_count: c.rental.node_count, provider: c.rental.provider,
      source: c.rental.source, price_kind: c.rental.price_kind, term_days: c.rental.term_days, tier: c.rental.tier, country: c.rental.country,
      region: c.rental.region, total_usd: c.total / 10000, total_usd_low: fastCost(job, c).total / 10000, total_usd_high: c.slow.total / 10000,
      hours: c.hours, usd_per_hour: c.price.hourlyUsd, fit: c.plan.fit / 1000, tokens_per_second: c.plan.tokensPerSecond,
      evidence: c.plan.band.evidence, price_day: c.rental.price_day, source_url: c.rental.source_url,
      pick: c.pick.length ? c.pick : null, cautions: cautionCodes(job, c),
    }));
  },
};

async function start() {
  try {
    await unpack();
    fillChoices();
    readState();
    byId("main").hidden = false;
    show("nav", Object.entries(VIEWS).map(([view, title]) => el("li", {}, el("a", { href: "#", "data-view": view }, title))));
    listen();
    showPublished();
    if (matchMedia("(max-width: 40rem)").matches && !LIMITS.some((name) => state.asked[name])) byId("limits").open = false;
    fillForm();
    showView();
    document.documentElement.setAttribute("data-ready", "");
  } catch (error) {
    byId("failed").hidden = false;
    byId("failed").textContent = `The page cannot be shown: ${error.message}. Ask the command gpufare cheapest instead.`;
    throw error;
  }
}

start();
