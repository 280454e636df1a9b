"use strict";
// Answers jobs as the page does, without a browser: node answer.js PAGE.html NOW_MS [why] < jobs.json
// Prints for each job the rows of its ranking, or why it has none; with `why`, also why each GPU has no row. A fault of
// the engine ends the process.

const { readFileSync } = require("node:fs");
const vm = require("node:vm");

const [page, now, why] = process.argv.slice(2);
const html = readFileSync(page, "utf-8");
const data = /<script type="application\/gzip" id="data">([^<]*)<\/script>/.exec(html)[1];
const scripts = [...html.matchAll(/<script>([\s\S]*?)<\/script>/g)].map(([, text]) => text);
const parts = ["// The facts of the page", "// How numbers are written", "// A job as people write it", "// A job priced and ranked", "// Why a GPU is not in a ranking"];
const needed = parts.map((part) => scripts.find((script) => script.includes(part)));
globalThis.byId = () => ({ textContent: data });
Date.now = () => Number(now);
vm.runInThisContext(needed.join("\n;\n"));

const answerOf = vm.runInThisContext(`(asked, why) => {
  let job;
  try { job = jobOf(asked); } catch (error) {
    if (error instanceof Refusal) return { refused: error.message };
    if (error instanceof BeyondPage) return { beyond: error.message };
    throw error;
  }
  const found = ranked(job);
  return {
    job: { ...job, recipe: null },
    reasons: why && Object.fromEntries(D.gpus.gpu_id.filter((gpu) => !found.rows.some((c) => c.rental.gpu_id === gpu)).map((gpu) => [gpu, reasonOf(job, gpu).reason])),
    meets: found.meetsDeadline,
    longer: found.longer && [found.longer.total, found.longer.hours],
    rows: found.rows.map((c) => {
      const fast = fastCost(job, c);
      return [c.rental.offer, c.total, c.hours, c.pick, cautionCodes(job, c), fast.total, c.slow.total, fast.hours, c.slow.hours,
        c.keepsDeadline, c.onDemand, c.cost.shareUsed, c.plan.fit, c.plan.setting.micro_batch, c.plan.band.evidence, c.cost.billed];
    }),
  };
}`);

(async () => {
  await vm.runInThisContext("unpack")();
  const asked = JSON.parse(readFileSync(0, "utf-8"));
  const begin = performance.now();
  const answers = asked.map((job) => answerOf(job, why));
  process.stderr.write(`${((performance.now() - begin) / asked.length).toFixed(2)} ms a job\n`);
  process.stdout.write(JSON.stringify(answers));
})();
