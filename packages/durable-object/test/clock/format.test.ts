// Goal: what the package stores is what FORMAT.md shows, and what it shows is read. Method: rows of an object under a
// virtual clock beside the page's golden bytes, both ways.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { afterEach, beforeEach, it } from "node:test";
import { TimerObject, type BuiltIns, type Gated, type Handlers } from "@dueline/durable-object/kinds";
import { TestClock, TestObject } from "@dueline/durable-object/testing";

type Kinds = { keep: unknown };

const FORMAT = readFileSync(new URL("../../../../FORMAT.md", import.meta.url), "utf8");
const HOUR_MS = 3_600_000;
/** The header of a pending timer, in front of its payload. */
const HEADER_BYTES = 12;
/** The payloads in the order of the page. */
const PAYLOADS: readonly unknown[] = [{ order: 42 }, "\u00e9", null, new Uint8Array([0, 255]), new Uint8Array()];

class Keeper extends TimerObject<Kinds> {
  get gated(): Gated {
    return this.timers.gated;
  }
  protected override handlers(): Handlers<Kinds> {
    return { keep: () => undefined };
  }
  protected override builtIns(): BuiltIns {
    return { gated: { look: ({ keys }) => keys.map(() => false), release: () => undefined } };
  }
}

let clock: TestClock;
let object: TestObject<Keeper>;
beforeEach(async () => {
  clock = TestClock.install();
  object = await TestObject.open(clock, Keeper);
});
afterEach(() => clock.uninstall());

/** The golden bytes of the package's section that have this word in front of them. */
function golden(word: string): string[] {
  const section = FORMAT.slice(FORMAT.indexOf("## The rows of the TypeScript package"), FORMAT.indexOf("## The data directory"));
  const lines = section.matchAll(new RegExp(`^${word} ([0-9a-f ]+)$`, "gm"));
  return Array.from(lines, ([, digits = ""]) => digits.replaceAll(" ", ""));
}

function rows(): { key: string; value: string }[] {
  return object.sql("SELECT lower(hex(key)) AS key, lower(hex(value)) AS value FROM dueline_kv");
}

it("the tables and the partition are called as the page says", async () => {
  await object.instance.schedule("keep", { after: HOUR_MS });
  const [partition] = object.sql<{ name: string }>("SELECT CAST(name AS TEXT) AS name FROM dueline_part");
  assert.equal(partition?.name, "object");
  const tables = object.sql("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'dueline%' ORDER BY name");
  assert.deepEqual(tables.map(({ name }) => name), ["dueline_kv", "dueline_meta", "dueline_part", "dueline_wake"]);
});

it("payloads are stored as the page shows, and what it shows is read", async () => {
  const keeper = object.instance;
  const shown = golden("payload");
  assert.equal(shown.length, PAYLOADS.length);
  for (const [index, payload] of PAYLOADS.entries()) {
    const name = `timer-${index}`;
    await keeper.schedule("keep", { name, after: HOUR_MS, payload });
    const reference = Buffer.from(name).toString("hex");
    const row = rows().find(({ key }) => key.startsWith("770010") && key.endsWith(reference));
    assert.equal(row?.value.slice(HEADER_BYTES * 2), shown[index], `payload ${index}`);
    const read = await keeper.get("keep", name);
    assert.deepEqual(read?.payload, payload);
  }
  await keeper.schedule("keep", { name: "nothing", after: HOUR_MS });
  assert.ok(rows().some(({ value, key }) => key.endsWith(Buffer.from("nothing").toString("hex")) && value.length === HEADER_BYTES * 2));
});

it("payloads that the page shows are read from rows that another release wrote", async () => {
  const keeper = object.instance;
  await keeper.schedule("keep", { name: "one", after: HOUR_MS, payload: "as it was" });
  for (const [index, payload] of golden("payload").entries()) {
    object.sql(
      "UPDATE dueline_kv SET value = unhex(substr(hex(value), 1, ?) || ?) WHERE substr(hex(key), 1, 6) = '770010'",
      HEADER_BYTES * 2,
      payload,
    );
    assert.deepEqual((await keeper.get("keep", "one"))?.payload, PAYLOADS[index]);
  }
});

it("a gated record is the row that the page shows", async () => {
  const { gated } = object.instance;
  const waitsFor = [{ place: "images", key: "a" }];
  const [key = "", value] = [...golden("key"), ...golden("value")];
  await gated.add("post", waitsFor);
  assert.equal(rows().find((row) => row.key === key)?.value, value);
  assert.ok(rows().some((row) => row.key.startsWith("77000c") && row.key.endsWith(key)), "the timer's reference");

  await gated.add("post", []);
  assert.notEqual(rows().find((row) => row.key === key)?.value, value);
  object.sql("UPDATE dueline_kv SET value = unhex(?) WHERE lower(hex(key)) = ?", value ?? "", key);
  assert.deepEqual(await gated.get("post"), waitsFor);
});
