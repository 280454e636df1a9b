"use strict";
// The choices: in the form, in the address, and in what they change.

const SECTIONS = ["ranking", "why-not", "compare", "history", "error", "sources", "audit", "method-section"];
const DEFAULT_JOBS = ["llama-3.1-8b-lora-100m", "8b-assistant-10k-examples"];

const NAMED = {
  job: "job", kind: "price kind", place: "place", tier: "tier of machines", one: "GPU to compare", other: "GPU to compare",
  historyGpu: "GPU for the history", historyKind: "history of the price kind", verdict: "verdict",
};

let state = {};
/** What the address asks for and this page does not have. */
let dropped = [];

/** The choices in the address that this page knows; the rest have their defaults, and are named in `dropped`. */
function readState() {
  const asked = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  const known = (choices, name) => (choices.some((choice) => choice.name === name) ? name : choices[0].name);
  const { kinds, places, tiers } = D.answers;
  const job = D.jobNumber.has(asked.job) ? asked.job : DEFAULT_JOBS.find((name) => D.jobNumber.has(name)) || D.workloads.workload[0];
  const gpu = (name) => (D.gpuNumber.has(asked[name]) ? asked[name] : "");
  state = {
    job, kind: known(kinds, asked.kind), place: known(places, asked.place), tier: known(tiers, asked.tier),
    one: gpu("one"), other: gpu("other"), historyGpu: gpu("historyGpu"), historyKind: asked.historyKind || "",
    verdict: D.claims.verdict.includes(asked.verdict) ? asked.verdict : "all",
  };
  const whole = withDefaults(chosen(state));
  dropped = Object.keys(NAMED).filter((name) => asked[name] && asked[name] !== whole[name])
    .map((name) => `This page has no ${NAMED[name]} ${asked[name]}; shown is ${whole[name]}. `);
}

function writeState() {
  const defaults = { kind: D.answers.kinds[0].name, place: D.answers.places[0].name, tier: D.answers.tiers[0].name, verdict: "all" };
  const kept = Object.keys(NAMED).filter((name) => state[name] && state[name] !== defaults[name]).map((name) => [name, state[name]]);
  history.replaceState(null, "", `#${new URLSearchParams(kept)}`);
}

/** The jobs that differ from this one in one choice. */
function fillJob() {
  const jobs = rowsOf(D.workloads);
  const job = jobs[D.jobNumber.get(state.job)];
  const scenarios = jobs.filter((each) => each.scenario).map((each) => [`job:${each.workload}`, each.title]);
  const models = [...new Map(jobs.filter((each) => !each.scenario).map((each) => [each.model, each.model_title]))].map(([model, title]) => [`model:${model}`, title]);
  options(byId("model"), [{ group: "Models", options: models }, { group: "Named jobs", options: scenarios }], job.scenario ? `job:${job.workload}` : `model:${job.model}`);
  const alike = jobs.filter((each) => !each.scenario && each.model === job.model);
  const pick = (id, values, value, label) => {
    options(byId(id), values.map((each) => [String(each), label(each)]), String(value));
    byId(id).disabled = job.scenario;
  };
  const unique = (values) => [...new Set(values)];
  if (job.scenario) {
    pick("method", [job.method], job.method, String);
    pick("tokens", [job.tokens], job.tokens, tokensText);
    pick("seq", [job.seq_len], job.seq_len, (n) => COMMAS.format(n));
    return;
  }
  const ofMethod = alike.filter((each) => each.method === job.method);
  const ofTokens = ofMethod.filter((each) => each.tokens === job.tokens);
  pick("method", unique(alike.map((each) => each.method)), job.method, String);
  pick("tokens", unique(ofMethod.map((each) => each.tokens)).sort((a, b) => a - b), job.tokens, tokensText);
  pick("seq", unique(ofTokens.map((each) => each.seq_len)), job.seq_len, (n) => COMMAS.format(n));
}

/** The job that the form asks for: where there is none with all of it, the nearest with what was changed last. */
function jobOfForm(changed) {
  const model = byId("model").value;
  if (model.startsWith("job:")) return model.slice(4);
  const wanted = { method: byId("method").value, tokens: Number(byId("tokens").value), seq_len: Number(byId("seq").value) };
  const last = { method: "method", tokens: "tokens", seq: "seq_len" }[changed];
  const distance = (job) => (last && job[last] !== wanted[last] ? 100 : 0) + (job.method === wanted.method ? 0 : 10) +
    Math.abs(Math.log10(job.tokens / wanted.tokens)) + (job.seq_len === wanted.seq_len ? 0 : 0.5);
  const jobs = rowsOf(D.workloads).filter((job) => !job.scenario && job.model === model.slice(6));
  return jobs.reduce((best, job) => (distance(job) < distance(best) ? job : best)).workload;
}

const namesOf = (choices) => choices.map((choice) => [choice.name, choice.label]);

/** Which GPUs are compared, and whose history is shown, where that is left open: the answer's, and the next. */
function withDefaults(numbers) {
  const ranked = whyNot(numbers).ranked.map(({ machine }) => machine[0]);
  const one = state.one || ranked[0] || D.gpus.gpu_id[0];
  const other = state.other || ranked.find((gpu) => gpu !== one) || D.gpus.gpu_id.find((gpu) => gpu !== one);
  const historyGpu = state.historyGpu || one;
  const kinds = [...new Set(D.history.series.filter(([gpu]) => gpu === historyGpu).map(([, kind]) => kind))];
  const wanted = state.historyKind || state.kind;
  return { ...state, one, other, historyGpu, historyKind: kinds.includes(wanted) ? wanted : kinds.includes("on_demand") ? "on_demand" : kinds[0] || "on_demand", historyKinds: kinds };
}

function showAll() {
  const numbers = chosen(state);
  const whole = withDefaults(numbers);
  fillJob();
  options(byId("kind"), namesOf(D.answers.kinds), state.kind);
  options(byId("place"), namesOf(D.answers.places), state.place);
  options(byId("tier"), namesOf(D.answers.tiers), state.tier);
  const gpus = D.gpus.gpu_id.map((id, n) => [id, D.gpus.name[n]]);
  const grouped = [{ group: "With a ranked price", options: gpus.slice(0, D.rented) }, { group: "Others", options: gpus.slice(D.rented) }];
  options(byId("one"), grouped, whole.one);
  options(byId("other"), grouped, whole.other);
  options(byId("history-gpu"), gpus.slice(0, D.rented), whole.historyGpu);
  options(byId("history-kind"), whole.historyKinds.map((kind) => [kind, kindWords(kind)]), whole.historyKind);
  options(byId("verdict"), [["all", "All"], ...[...new Set(D.claims.verdict)].sort().map((verdict) => [verdict, verdict])], state.verdict);
  const found = ranking(numbers);
  byId("dropped").hidden = !dropped.length;
  show("dropped", ...dropped);
  showJob(state);
  showAnswer(state, found);
  showRanking(state, found);
  showWhyNot(state, numbers);
  whereChanged("compare", [whole.one, whole.other, state.job, state.kind], () => showCompare(whole, numbers));
  whereChanged("history", [whole.historyGpu, whole.historyKind], () => showHistory(whole));
  whereChanged("audit", [state.verdict], () => showAudit(state));
  document.title = found.rows.length ? `${money(found.rows[0].total)}: ${state.job}, gpufare` : `${state.job}, gpufare`;
}

function change(changes) {
  Object.assign(state, changes);
  dropped = [];
  writeState();
  showAll();
}

function listen() {
  byId("form").addEventListener("submit", (event) => event.preventDefault());
  for (const id of ["model", "method", "tokens", "seq"]) byId(id).addEventListener("change", () => change({ job: jobOfForm(id) }));
  for (const id of ["kind", "place", "tier", "one", "other"]) byId(id).addEventListener("change", () => change({ [id]: byId(id).value }));
  byId("history-gpu").addEventListener("change", () => change({ historyGpu: byId("history-gpu").value }));
  byId("history-kind").addEventListener("change", () => change({ historyKind: byId("history-kind").value }));
  byId("verdict").addEventListener("change", () => change({ verdict: byId("verdict").value }));
  byId("find").addEventListener("input", () => showWhyNot(state, chosen(state)));
  addEventListener("hashchange", () => { readState(); showAll(); });
  // The address has the choices, so that a link within the page must not change it.
  document.addEventListener("click", (event) => {
    const inside = event.target.closest("a[data-stay]");
    if (!inside) return;
    event.preventDefault();
    const section = byId(inside.getAttribute("href").slice(1));
    section.scrollIntoView();
    section.setAttribute("tabindex", "-1");
    section.focus({ preventScroll: true });
  });
}

async function start() {
  try {
    await unpack();
    readState();
    byId("main").hidden = false;
    show("nav", SECTIONS.map((id) => el("li", {}, el("a", { href: `#${id}`, "data-stay": true }, byId(id).querySelector("h2").textContent))));
    listen();
    showPublished();
    showAll();
    showError();
    showSources();
    showMethod();
    document.documentElement.setAttribute("data-ready", "");
  } catch (error) {
    byId("failed").hidden = false;
    byId("failed").textContent = `The page cannot be shown: ${error.message}. Ask the command gpufare cheapest instead.`;
    throw error;
  }
}

start();
