// The cold start: what the package adds to a worker's, and what each object takes.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { percentile } from "../../test/node/figures.js";
import { PACKAGE, Workerd, type ObjectClient } from "../../test/node/workerd.js";

/** An entry of the package: what it is called here, its class, and its module. */
interface Entry {
  readonly name: string;
  readonly path: string;
  readonly of: string;
  readonly module: string;
}

const ENTRIES: readonly Entry[] = [
  { name: "the main entry", path: "main", of: "Cold", module: "dueline_object" },
  { name: "with the built-in kinds", path: "kinds", of: "ColdWithKinds", module: "dueline_object_kinds" },
];

export async function cold(rounds: number): Promise<void> {
  for (const entry of ENTRIES) {
    await coldOf(entry, rounds);
  }
}

async function coldOf({ name, path, of, module }: Entry, rounds: number): Promise<void> {
  console.log(`cold start, ${name}`);
  console.log(`  module ${sizes(module)}`);
  const loaded: number[] = [];
  const first: number[] = [];
  const made: number[] = [];
  const again: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    loaded.push(await load(path));
    const workerd = await Workerd.start({ folder: "dist-bench/worker", entry: "main.js", classes: [of] });
    try {
      for (let object = 0; object < 20; object += 1) {
        const found = workerd.object(of, `${object}`);
        (object === 0 ? first : made).push(await found.call<number>("schedule"));
        await found.call("evict").catch(() => undefined);
        again.push(await afresh(found));
      }
    } finally {
      await workerd.stop();
    }
  }
  console.log(`  once an isolate: modules read, compiled, instantiated   ${spread(loaded)}`);
  console.log(`  first object of an isolate: built, tables, first timer  ${spread(first)}`);
  console.log(`  another new object: built, tables, first timer          ${spread(made)}`);
  console.log(`  an object built again: first answer                     ${spread(again)}`);
}

/** The first answer behind an eviction; the request that meets it may fail. */
async function afresh(object: ObjectClient): Promise<number> {
  for (;;) {
    const took = await object.call<number | null>("get").catch(() => null);
    if (took !== null) {
      return took;
    }
  }
}

async function load(path: string): Promise<number> {
  const workerd = await Workerd.start({ folder: "dist-bench/worker", entry: "load.js", classes: [] });
  try {
    return Number(await workerd.object(path, "").call<number>("load"));
  } finally {
    await workerd.stop();
  }
}

function sizes(module: string): string {
  const folder = join(PACKAGE, "dist/generated");
  const files = [`${module}_bg.wasm`, `${module}.js`].filter((file) => existsSync(join(folder, file)));
  return files
    .map((file) => {
      const bytes = readFileSync(join(folder, file));
      return `${file} ${bytes.length} bytes, ${gzipSync(bytes, { level: 9 }).length} after gzip`;
    })
    .join("; ");
}

function spread(figures: readonly number[]): string {
  const ms = [0, 0.5, 1].map((part) => percentile(figures, part).toFixed(1));
  return `${ms[1]} ms (${ms[0]} to ${ms[2]})`;
}
