"use strict";
// The facts of the page, unpacked from its compressed data. See pipeline/page/plans.py for the arrays of plans.

let D = null;

async function unpack() {
  if (typeof DecompressionStream === "undefined") throw new Error("this browser cannot unpack the data: it is older than 2023");
  const bytes = Uint8Array.from(atob(byId("data").textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  read(new Uint8Array(await new Response(stream).arrayBuffer()));
}

/** Four bytes with the length of the JSON, the JSON, and the arrays that it lists. */
function read(bytes) {
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  D = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  let at = 4 + length;
  const arrays = {};
  for (const [name, size] of D.arrays) {
    arrays[name] = bytes.subarray(at, at + size);
    at += size;
  }
  index();
  unpackPlans(arrays);
}

/** A row of columns, as an object. */
function rowOf(columns, number) {
  return Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, values[number]]));
}

const rowsOf = (columns) => (Object.values(columns)[0] || []).map((_, number) => rowOf(columns, number));

/** Rows of columns whose distinct values stand once. */
function codedRows(columns) {
  const entries = Object.entries(columns);
  const count = entries.length ? entries[0][1][1].length : 0;
  return Array.from({ length: count }, (_, row) => Object.fromEntries(entries.map(([name, [values, places]]) => [name, values[places[row]]])));
}

function index() {
  D.p = Object.fromEntries(rowsOf(D.parameters).map(({ name, value }) => [name, value]));
  D.settings = rowsOf(D.settings);
  D.settingOf = new Map(D.settings.map((setting) => [setting.setting, setting]));
  D.gpuOf = new Map(rowsOf(D.gpus).map((gpu) => [gpu.gpu_id, gpu]));
  D.models = rowsOf(D.models);
  D.modelOf = new Map(D.models.map((model) => [model.model, model]));
  D.sourceOf = new Map(rowsOf(D.sources).map((source) => [source.source, source]));
  D.slots = D.slots.map(([gpu_id, gpu_count, node_count]) => ({ gpu_id, gpu_count, node_count }));
  const groups = new Map();
  D.rentals = codedRows(D.rentals).map((rental) => {
    // Rentals that differ only in their offer: a ranking has the best of each group.
    const key = [rental.price_kind, rental.slot, rental.source, rental.tier, rental.term_days].join("\t");
    if (!groups.has(key)) groups.set(key, groups.size);
    return { ...rental, ...D.slots[rental.slot], group: groups.get(key) };
  });
  D.recipeOf = new Map(rowsOf(D.recipes).map((recipe, row) => [recipeKey(recipe), { ...recipe, row }]));
  D.prices = codedRows(D.prices);
  D.namesOf = new Map();
  for (const { setting, key, name, meanings } of codedRows(D.names)) {
    if (!D.namesOf.has(setting)) D.namesOf.set(setting, new Map());
    const ofSetting = D.namesOf.get(setting);
    if (!ofSetting.has(key)) ofSetting.set(key, []);
    ofSetting.get(key).push({ name, meanings: meanings ?? [name] });
  }
}

const LEAST_POWER = -6;
const MANTISSAS = 90000;
const NEIGHBOURS = 4;
const POWERS = Array.from({ length: 30 }, (_, n) => { const exponent = n + LEAST_POWER - 4; return exponent >= 0 ? Number(`1e${exponent}`) : 1 / Number(`1e${-exponent}`); });
const power = (exponent) => POWERS[exponent - LEAST_POWER + 4];

/** The place of a speed among the numbers of five digits; the same steps as in speed_number of plans.py. */
function speedNumber(speed) {
  let exponent = LEAST_POWER;
  while (speed >= power(exponent + 1)) exponent += 1;
  const scaled = exponent >= 4 ? speed / power(exponent - 4) : speed * power(4 - exponent);
  return (exponent - LEAST_POWER) * MANTISSAS + Math.floor(scaled + 0.5) - MANTISSAS / 9;
}

/** The speed of a place: five digits, as the nearest number of 64 bits. */
function speedAt(place) {
  const exponent = Math.floor(place / MANTISSAS) + LEAST_POWER;
  const digits = (place % MANTISSAS) + MANTISSAS / 9;
  return exponent >= 4 ? digits * power(exponent - 4) : digits / power(4 - exponent);
}

/** The cells of the plans, by recipe and slot: the speed (0: none) and the numbers of what else a plan has. */
function unpackPlans(arrays) {
  const slots = D.slots.length;
  const recipes = D.recipes.model.length;
  const cells = { speed: new Float64Array(recipes * slots) };
  for (const name of ["band", "setting", "fit", "state"]) {
    cells[name] = new Uint8Array(recipes * slots);
    for (let slot = 0; slot < slots; slot += 1) {
      for (let recipe = 0; recipe < recipes; recipe += 1) cells[name][recipe * slots + slot] = arrays[name][slot * recipes + recipe];
    }
  }
  const last = new Int32Array(slots).fill(-1);
  let at = 0;
  for (let recipe = 0; recipe < recipes; recipe += 1) {
    const seen = [];
    const here = recipe * slots;
    for (let slot = 0; slot < slots; slot += 1) {
      if (cells.band[here + slot] === 0) continue;
      let guess = seen.length ? cells.speed[here + seen[seen.length - 1]] : 1;
      if (last[slot] >= 0) {
        const there = last[slot] * slots;
        guess = cells.speed[there + slot];
        for (let place = seen.length - 1; place >= Math.max(0, seen.length - NEIGHBOURS); place -= 1) {
          const near = seen[place];
          if (cells.speed[there + near] === 0) continue;
          guess = cells.speed[there + slot] * cells.speed[here + near] / cells.speed[there + near];
          break;
        }
      }
      const wrong = arrays.speed_low[at] + arrays.speed_middle[at] * 256 + arrays.speed_high[at] * 65536;
      cells.speed[here + slot] = speedAt(speedNumber(guess) + (wrong % 2 ? -(wrong + 1) / 2 : wrong / 2));
      at += 1;
      last[slot] = recipe;
      seen.push(slot);
    }
  }
  D.cells = cells;
}
