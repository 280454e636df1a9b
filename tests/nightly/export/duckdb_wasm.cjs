// node duckdb_wasm.cjs MODULES FILE QUERIES: asks DuckDB-WASM queries on the published file, without any extension.
// QUERIES is a JSON file of queries by name; prints their rows as text, in JSON.
const fs = require("fs");
const dist = `${process.argv[2]}/@duckdb/duckdb-wasm/dist`;
const duckdb = require(`${dist}/duckdb-node-blocking.cjs`);

async function main() {
  const builds = {
    mvp: { mainModule: `${dist}/duckdb-mvp.wasm`, mainWorker: "" },
    eh: { mainModule: `${dist}/duckdb-eh.wasm`, mainWorker: "" },
  };
  const database = await duckdb.createDuckDB(builds, new duckdb.VoidLogger(), duckdb.NODE_RUNTIME);
  await database.instantiate();
  database.registerFileBuffer("gpufare.duckdb", new Uint8Array(fs.readFileSync(process.argv[3])));
  const connection = database.connect();
  connection.query("SET autoload_known_extensions = false");
  connection.query("ATTACH 'gpufare.duckdb' AS gpufare (READ_ONLY)");
  connection.query("USE gpufare");
  const answers = {};
  for (const [name, query] of Object.entries(JSON.parse(fs.readFileSync(process.argv[4], "utf8")))) {
    const answer = connection.query(query);
    const columns = answer.schema.fields.map((_, index) => answer.getChildAt(index));
    answers[name] = Array.from({ length: answer.numRows }, (_, row) =>
      columns.map((column) => column.get(row)?.toString() ?? null),
    );
  }
  console.log(JSON.stringify(answers));
}

main();
