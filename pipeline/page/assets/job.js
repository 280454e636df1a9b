"use strict";
// A job as people write it, read as the command reads it: numbers, names and defaults. What is wrong is refused with
// its reason, and what this page does not plan is named; nothing is ever another job than the one asked for.

class Refusal extends Error {
  /** `setting`: the one that is wrong, if it is one. */
  constructor(message, setting = null) {
    super(message);
    this.setting = setting;
  }
}

/** A job that is right, but that only the command can answer. */
class BeyondPage extends Error {
  /** `lengths`: the sequence lengths with which the page could answer. */
  constructor(message, lengths = []) {
    super(message);
    this.lengths = lengths;
  }
}

const WHOLE_NUMBER = /^[+-]?inf/;
const NUMBER = /^([^\d.+-]*)([+-]?(?:[1-9]\d{0,2}(?:[, _]\d{3})+(?:\.\d*)?|\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|[+-]?inf(?:inity)?)(.*)$/;
const PARTS = /(\d+(?:\.\d+)?) ?([a-z]+)(?: and |, ?| )?/g;

const inUnit = (number, size) => (size >= 1 ? number * size : number / Math.round(1 / size));

/** The number in a text such as 100M, 20 USD or 1h30m, in the unit of a setting (number_in of amounts.py). */
function numberIn(setting, text) {
  const isLength = setting.kind === "whole" && setting.unit === "tokens";
  const unit = isLength ? D.length_unit : D.units[setting.unit ?? ""];
  const refused = () => new Refusal(`${fieldOf(setting.setting)}: '${text}' is not a number such as ${unit.example}`, setting.setting);
  const sizes = new Map(Object.entries(unit.words));
  const written = String(text).toLowerCase().split(/\s+/).filter(Boolean).join(" ");
  const parts = [...written.matchAll(PARTS)];
  if (parts.length > 1 && written.replace(PARTS, "") === "" && parts.every(([, , word]) => sizes.has(word))) {
    const each = parts.map(([, number, word]) => [Number(number), sizes.get(word)]);
    if (each.some(([, size], place) => place > 0 && size >= each[place - 1][1])) throw refused();
    return each.reduce((sum, [number, size]) => sum + inUnit(number, size), 0);
  }
  const found = NUMBER.exec(written);
  if (found === null || (sizes.has("$") && found[2].replace(/^[+-]+/, "").startsWith("."))) throw refused();
  const [, before, digits, after] = found;
  let number = WHOLE_NUMBER.test(digits) ? (digits.startsWith("-") ? -Infinity : Infinity) : Number(digits.replace(/[, _]/g, ""));
  let words = after.trim();
  for (const [multiple, size] of Object.entries(unit.multiples).sort(([a], [b]) => b.length - a.length)) {
    if (words.startsWith(multiple) && !/^\p{L}/u.test(words.slice(multiple.length))) {
      number *= size;
      words = words.slice(multiple.length);
      break;
    }
  }
  const rest = `${before}${words}`.replace(/\s/g, "");
  if (rest && !sizes.has(rest)) throw refused();
  if ((rest === "%" || rest === "percent") && digits.startsWith("+")) throw refused();
  return inUnit(number, sizes.get(rest) ?? 1);
}

/** A number of a setting within its bounds; null if it is left open. */
function numberOf(asked, name) {
  const value = asked[name];
  if (value === undefined) return null;
  const setting = D.settingOf.get(name);
  const number = typeof value === "number" ? value : numberIn(setting, value);
  const option = fieldOf(name);
  if (Number.isNaN(number)) throw new Refusal(`${option} must be a number`, name);
  if (setting.kind === "whole" && !Number.isInteger(number)) throw new Refusal(`${option} must be a whole number, not ${number}`, name);
  if (setting.least === null ? !(number > 0) : number < setting.least) {
    throw new Refusal(`${option} must be ${setting.least === null ? "above 0" : `at least ${setting.least}`}, not ${number}`, name);
  }
  if (number > (setting.most ?? Infinity)) throw new Refusal(`${option} must be at most ${setting.most}, not ${number}`, name);
  return number;
}

const optionOf = (name) => `--${name.replaceAll("_", "-")}`;

/** What a setting is called in a sentence. */
const fieldOf = (name) => capital(words(name));

/** A flag of a job; false if it is left open. */
function flagOf(asked, name) {
  const value = asked[name] ?? false;
  if (!["true", "false"].includes(String(value))) throw new Refusal(`${fieldOf(name)} must be true or false, not ${value}`, name);
  return String(value) === "true";
}

/** The form in which names are compared (name_key in SQL). */
const nameKey = (name) => name.toLowerCase().replace(/([0-9])[^a-z0-9.]+([0-9])/g, "$1~$2").replace(/[^a-z0-9.~]/g, "");

const MODEL_PARTS = new Set(["instruct", "base", "it", "chat", "hf", "pt", "thinking", "meta", "unsloth", "bnb", "4bit"]);
const withoutOwner = (name) => /[^/]*$/.exec(name)[0];
const baseModel = (name) => withoutOwner(name.toLowerCase()).split("-").filter((part) => !MODEL_PARTS.has(part)).join("-");

/** The key of a name without what adds nothing (short_key in SQL). */
function shortKey(named, key) {
  if (named === "method") return key.replace(/(finetune|finetuning|ing)$/, "");
  if (named !== "gpu") return key;
  const vendors = [...new Set(D.gpus.vendor)].map((vendor) => nameKey(vendor)).join("|");
  return key.replace(/(gpus?|s|hbm[0-9]e?)$/, "").replace(new RegExp(`^(${vendors})`), "").replace(/^(geforce|tesla)|([0-9]sxm)[0-9]~?/, "$2");
}

/** The names in a text or a list. */
const namesIn = (value) => (Array.isArray(value) ? value : String(value).replace(/^[[\] ]+|[[\] ]+$/g, "").split(","))
  .map((name) => name.trim().replace(/^['" ]+|['" ]+$/g, "")).filter(Boolean);

/** What a name of a setting means: a list, and the model that it was taken for; refuses an unknown name. */
function meaningOf(setting, name) {
  const { named } = setting;
  const plain = nameKey(withoutOwner(name));
  const base = setting.setting === "model" ? nameKey(baseModel(name)) : shortKey(named, plain);
  let best = null;
  for (const key of new Set([plain, base])) {
    for (const known of D.namesOf.get(named)?.get(key) ?? []) {
      const place = 2 * Number(key === plain) + Number(known.name === known.meanings[0]);
      if (best === null || place > best.place) best = { place, ...known };
    }
  }
  if (best !== null) return best.meanings;
  const near = namesLike(named, base);
  throw new Refusal(`${fieldOf(setting.setting)}: no ${named} ${name}${near.length ? `; the nearest are ${near.join(", ")}` : ""}${/\s(or|and)\s/i.test(name) ? "; separate names by commas" : ""}`, setting.setting);
}

/** Up to five known names: those that contain a key, the ones that begin with it first, or share most pairs of letters. */
function namesLike(named, key) {
  const pairs = (text) => new Set(Array.from({ length: Math.max(0, text.length - 1) }, (_, at) => text.slice(at, at + 2)));
  const wanted = pairs(key);
  const scored = [];
  for (const [known, entries] of D.namesOf.get(named) ?? []) {
    const has = pairs(known);
    const shared = [...has].filter((pair) => wanted.has(pair)).length;
    const score = (key && known.includes(key) ? 1 + Number(known.startsWith(key)) : 0) + 2 * shared / (has.size + wanted.size || 1);
    if (score >= 0.5) scored.push([score, entries[0].meanings.length === 1 ? entries[0].meanings[0] : entries[0].name]);
  }
  return [...new Set(scored.sort((a, b) => b[0] - a[0]).map(([, name]) => name))].slice(0, 5);
}

/** The meanings of a setting's names; null if it is left open. */
function namesOf(asked, name) {
  const value = asked[name];
  if (value === undefined) return null;
  const setting = D.settingOf.get(name);
  const names = namesIn(value);
  if (!names.length) return null;
  if (setting.kind === "name" && names.length > 1) throw new Refusal(`${fieldOf(name)}: name one, not ${names.join(", ")}`, name);
  const meant = names.flatMap((each) => meaningOf(setting, each));
  // A card without a form factor means, in a constraint, every card of its model and memory.
  if (setting.named === "gpu") return [...new Set([...meant, ...D.gpus.gpu_id.filter((_, at) => meant.includes(D.gpus.open_id[at]))])];
  return meant;
}

function constraintsOf(asked) {
  const of = (wanted, unwanted = null) => ({ wanted: namesOf(asked, wanted), unwanted: unwanted && namesOf(asked, unwanted) });
  return {
    gpu_id: of("gpu", "exclude_gpu"), provider: of("provider", "exclude_provider"), source: of("source", "exclude_source"),
    tier_class: of("tier"), country: of("country", "exclude_country"), continent: of("continent"),
  };
}

/** The settings that this page takes: those of the recipes that it has, and all that plans do not depend on. */
const TAKEN = new Set([
  "model", "method", "seq_len", "lora_rank", "tokens", "examples", "tokens_per_example", "epochs", "gpu", "exclude_gpu", "gpus", "min_gpus",
  "max_nodes", "provider", "exclude_provider", "source", "exclude_source", "tier", "country", "exclude_country", "continent", "kind",
  "max_term_days", "max_usd", "max_age_days", "max_hours", "evidence", "assumed_sizes", "hour_worth", "bid", "objective",
]);

/** The kinds of evidence that are at least as good as one, which the setting lists best first. */
function evidencesFrom(least) {
  const kinds = D.settingOf.get("evidence").choices.split(" ");
  return kinds.slice(0, kinds.indexOf(least) + 1);
}

/** The job of what was asked for, by setting. Throws Refusal for what is wrong, BeyondPage for what the page has no plans for. */
function jobOf(given) {
  const asked = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null && value !== undefined && value !== ""));
  for (const name of Object.keys(asked)) if (!D.settingOf.has(name)) throw new Refusal(`a job has no setting ${name}`);
  const model = namesOf(asked, "model");
  if (model === null) throw new Refusal("name a model", "model");
  const beyond = Object.keys(asked).filter((name) => !TAKEN.has(name));
  const method = namesOf(asked, "method")?.[0] ?? D.settingOf.get("method").default_value;
  const hasAdapters = method === "lora" || method === "qlora";
  const seqLen = numberOf(asked, "seq_len") ?? Number(D.settingOf.get("seq_len").default_value);
  const rank = hasAdapters ? numberOf(asked, "lora_rank") ?? Number(D.settingOf.get("lora_rank").default_value) : null;
  const examples = numberOf(asked, "examples");
  const perExample = numberOf(asked, "tokens_per_example");
  if (asked.tokens !== undefined && (examples !== null || perExample !== null)) throw new Refusal("give either tokens, or examples and tokens per example", "tokens");
  const perEpoch = numberOf(asked, "tokens") ?? (examples !== null && perExample !== null ? examples * perExample : null);
  if (perEpoch === null) throw new Refusal("give tokens, or examples and tokens per example", "tokens");
  const epochs = numberOf(asked, "epochs") ?? Number(D.settingOf.get("epochs").default_value);
  const tokens = perEpoch * epochs;
  const minGpus = numberOf(asked, "min_gpus");
  const gpus = numberOf(asked, "gpus");
  if (minGpus > gpus && gpus !== null) throw new Refusal(`At least ${minGpus} GPUs is more than at most ${gpus}`, "min_gpus");
  const maxHours = numberOf(asked, "max_hours");
  const evidence = namesOf(asked, "evidence")?.[0] ?? null;
  const job = {
    model: model[0], method, seq_len: seqLen, lora_rank: rank, tokens, epochs, max_gpus: gpus ?? Math.max(Number(D.settingOf.get("gpus").default_value), minGpus ?? 1),
    min_gpus: minGpus, max_nodes: numberOf(asked, "max_nodes"), constraints: constraintsOf(asked),
    price_kinds: namesOf(asked, "kind") ?? [D.settingOf.get("kind").default_value],
    max_term_days: numberOf(asked, "max_term_days"), max_age_days: numberOf(asked, "max_age_days"),
    max_usd: numberOf(asked, "max_usd"), deadline_is_strict: maxHours !== null,
    max_hours: maxHours ?? (tokens > D.p.long_job_tokens ? D.p.long_job_deadline_hours : D.p.deadline_hours),
    evidences: evidence === null ? null : evidencesFrom(evidence),
    assumed_sizes: flagOf(asked, "assumed_sizes"), hour_worth: numberOf(asked, "hour_worth"),
    bid: numberOf(asked, "bid") ?? Number(D.settingOf.get("bid").default_value),
    objective: namesOf(asked, "objective")?.[0] ?? D.settingOf.get("objective").default_value,
  };
  if (beyond.length) throw new BeyondPage(`this page does not plan ${beyond.map(optionOf).join(", ")}`);
  job.recipe = D.recipeOf.get(recipeKey(job));
  if (job.recipe === undefined) throw missingRecipe(job);
  return job;
}

const recipeKey = (r) => [r.model, r.method, r.seq_len, r.lora_rank ?? ""].join(" ");

/** Which part of a job's recipe the page has no plans for, and what it has. */
function missingRecipe(job) {
  const ofModel = [...D.recipeOf.values()].filter((recipe) => recipe.model === job.model);
  if (!ofModel.length) return new BeyondPage(`this page has no plans for ${job.model} yet`);
  const alike = ofModel.filter((recipe) => recipe.method === job.method);
  if (!alike.length) return new BeyondPage(`this page plans ${job.model} with ${choiceOf([...new Set(ofModel.map((recipe) => recipe.method))])} only`);
  const ofRank = alike.filter((recipe) => recipe.lora_rank === job.lora_rank);
  if (!ofRank.length) return new BeyondPage(`this page plans ${job.model} with a rank of ${choiceOf([...new Set(alike.map((recipe) => recipe.lora_rank))])} only`);
  const lengths = ofRank.map((recipe) => recipe.seq_len);
  return new BeyondPage(`this page plans this recipe with sequences of ${choiceOf(lengths.map((length) => COMMAS.format(length)))} only`, lengths);
}

/** The command that answers the same. */
function commandOf(asked, program = "gpufare cheapest") {
  const words = [program];
  for (const { setting } of D.settings) {
    const value = asked[setting];
    if (value === undefined || value === null || value === "" || String(value) === "false") continue;
    const text = Array.isArray(value) ? value.join(",") : String(value);
    words.push(optionOf(setting));
    if (value !== true && !(D.settingOf.get(setting).kind === "flag" && text === "true")) words.push(quoted(text));
  }
  return words.join(" ");
}

/** A word of a shell. */
const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\"'\"'")}'`);
