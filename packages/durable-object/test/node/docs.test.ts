// Goal: the documentation shows programs that are compiled and run, and tells of every error. Method: its blocks
// are compared with the files of the examples, its table with the list in the source.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { PACKAGE } from "./workerd.js";

const PAGES = [
  join(PACKAGE, "README.md"),
  join(PACKAGE, "../../docs/durable-object.md"),
  join(PACKAGE, "../../docs/durable-object-kinds.md"),
];

function blocks(page: string): string[] {
  const fenced = /^```(?:ts|toml)\n([^]*?)^```$/gm;
  return Array.from(readFileSync(page, "utf8").matchAll(fenced), ([, block = ""]) => block);
}

it("every program of the documentation is a file of the examples", () => {
  const examples = readdirSync(join(PACKAGE, "examples"), { recursive: true, encoding: "utf8" })
    .filter((file) => /(\/src\/.*\.ts|\/test\/.*\.ts|wrangler\.toml)$/.test(file))
    .map((file) => readFileSync(join(PACKAGE, "examples", file), "utf8"));
  const shown = PAGES.map(blocks);
  assert.ok(shown.every((page) => page.length > 0), "a page without a program");
  const others = shown.flat().filter((block) => !examples.includes(block));
  assert.deepEqual(others, []);
});

it("the documentation tells of every name that `TimerObject` takes, and of no other", () => {
  const sources = ["src/base-timer-object.ts", "src/kinds/timer-object.ts"].map((file) => readFileSync(join(PACKAGE, file), "utf8"));
  const members = /^  (?:protected |abstract |override |readonly |async |get )*(\w+)\??[(<:]/gm;
  const taken = new Set(sources.flatMap((source) => Array.from(source.matchAll(members), ([, name]) => name)));
  taken.delete("constructor");
  const page = readFileSync(PAGES[1] ?? "", "utf8");
  const [told = ""] = /^\*\*Names\.\*\*[^]*?A method of yours/m.exec(page) ?? [];
  const names = Array.from(told.matchAll(/`(\w+)`/g), ([, name]) => name).filter((name) => name !== "TimerObject");
  assert.ok(taken.size > 10);
  assert.deepEqual(names.sort(), [...taken].sort());
});

it("the documentation tells of every error, and of no other", () => {
  const source = readFileSync(join(PACKAGE, "src/errors.ts"), "utf8");
  const list = source.slice(0, source.indexOf("export class"));
  const codes = Array.from(list.matchAll(/\| "(\w+)"/g), ([, code]) => code);
  const page = readFileSync(PAGES[1] ?? "", "utf8");
  const section = page.slice(page.indexOf("## Errors"));
  const told = Array.from(section.matchAll(/^\| `(\w+)` \|/gm), ([, code]) => code);
  assert.ok(codes.length > 0);
  assert.deepEqual(told, codes);
});
