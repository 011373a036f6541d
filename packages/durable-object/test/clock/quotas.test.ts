// Goal: quotas as an object has them: exact counters of a window, limits that are never exceeded, writes that
// commit with their charge, rows that go by themselves. Method: an object under a virtual clock, over many windows.
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { TimerObject, type BuiltIns, type Effects, type Quotas } from "@dueline/durable-object/kinds";
import { TestClock, TestObject } from "@dueline/durable-object/testing";

const HOUR_MS = 3_600_000;
const GRACE_MS = 30_000;

class Meter extends TimerObject<Record<string, never>> {
  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    this.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS written (text TEXT NOT NULL)");
  }
  protected override handlers(): Record<string, never> {
    return {};
  }
  protected override builtIns(): BuiltIns {
    return { quotas: { api: { window: HOUR_MS }, burst: { window: 1_000 } } };
  }
  get quotas(): Quotas {
    return this.timers.quotas;
  }
  write(text: string): Effects {
    return () => void this.ctx.storage.sql.exec("INSERT INTO written VALUES (?)", text);
  }
  counts() {
    return this.timers.counts();
  }
}

let clock: TestClock;
let meter: TestObject<Meter>;
const written = (): unknown[] => meter.sql("SELECT text FROM written").map(({ text }) => text);
/** How many rows the kind has. */
const rows = (): number => meter.sql("SELECT key FROM dueline_kv WHERE key >= x'620005' AND key < x'620006'").length;
const code = (code: string) => (error: unknown) => (error as { code?: string }).code === code;

beforeEach(async () => {
  clock = TestClock.install({ now: "2030-06-01T20:15:00Z" });
  meter = await TestObject.open(clock, Meter);
});
afterEach(() => clock.uninstall());

describe("a quota", () => {
  it("counts what is charged in its window, each counter for itself", async () => {
    const { quotas } = meter.instance;
    const window = { startsAt: Date.parse("2030-06-01T20:00:00Z"), endsAt: Date.parse("2030-06-01T21:00:00Z") };
    assert.deepEqual(await quotas.usage("api"), { used: [0, 0, 0, 0], ...window });
    assert.equal(await quotas.total("api"), undefined);
    const first = await quotas.charge("api", [1, 512]);
    assert.deepEqual(first, { outcome: "charged", used: [1, 512, 0, 0], ...window });
    await quotas.charge("api", [1, 0, 0, 7]);
    assert.deepEqual(await quotas.usage("api"), { used: [2, 512, 0, 7], ...window });
    assert.deepEqual(await quotas.total("api"), [2, 512, 0, 7]);
    assert.deepEqual((await quotas.usage("burst")).used, [0, 0, 0, 0]);
  });

  it("refuses what would be over a limit, and nothing else", async () => {
    const { quotas } = meter.instance;
    const limits = [3, 1_000];
    assert.equal((await quotas.charge("api", [3, 999], { limits })).outcome, "charged");
    const { startsAt, endsAt } = await quotas.usage("api");
    const refused = (counter: number) => ({ outcome: "refused", counter, used: [3, 999, 0, 0], startsAt, endsAt });
    assert.deepEqual(await quotas.charge("api", [1, 1], { limits }), refused(0));
    assert.deepEqual(await quotas.charge("api", [0, 2], { limits }), refused(1));
    assert.deepEqual((await quotas.charge("api", [0, 1], { limits })).used, [3, 1_000, 0, 0]);
    // Without a limit it counts all the same; one that is lower than what is used refuses a charge of nothing.
    assert.deepEqual((await quotas.charge("api", [5], { limits: [Infinity] })).used, [8, 1_000, 0, 0]);
    assert.equal((await quotas.charge("api", [0], { limits: [7] })).outcome, "refused");
    // A counter that is not charged has its limit too, if one is given.
    const other = await quotas.charge("api", [1], { limits: [10, 999] });
    assert.equal(other.outcome === "refused" && other.counter, 1);
  });

  it("admits as many of those who ask together as there is room for", async () => {
    const { quotas } = meter.instance;
    const asked = Array.from({ length: 30 }, (_, index) =>
      quotas.charge("api", [1], { limits: [10], effects: meter.instance.write(String(index)) }),
    );
    const outcomes = (await Promise.all(asked)).map(({ outcome }) => outcome);
    assert.equal(outcomes.filter((outcome) => outcome === "charged").length, 10);
    assert.equal(written().length, 10);
    assert.deepEqual((await quotas.usage("api")).used, [10, 0, 0, 0]);
  });

  it("counts to 2^53 - 1, exactly", async () => {
    const { quotas } = meter.instance;
    const most = Number.MAX_SAFE_INTEGER;
    assert.deepEqual((await quotas.charge("api", [most - 1, most])).used, [most - 1, most, 0, 0]);
    const over = await quotas.charge("api", [2]);
    assert.deepEqual([over.outcome, over.used], ["refused", [most - 1, most, 0, 0]]);
    assert.deepEqual((await quotas.charge("api", [1])).used, [most, most, 0, 0]);
    assert.equal((await quotas.charge("api", [most, most, most, most])).outcome, "refused");
  });

  it("begins at 0 with each window, and its rows go 30 s behind the window's end", async () => {
    const { quotas } = meter.instance;
    for (let hour = 0; hour < 5; hour += 1) {
      const { endsAt } = await quotas.charge("api", [hour + 1], { limits: [hour + 1] });
      assert.deepEqual((await quotas.usage("api")).used, [hour + 1, 0, 0, 0]);
      assert.equal(rows(), 1);
      await clock.advanceTo(endsAt);
      assert.deepEqual((await quotas.usage("api")).used, [0, 0, 0, 0]);
      assert.deepEqual(await quotas.total("api", endsAt - 1), [hour + 1, 0, 0, 0]);
      await clock.advance(GRACE_MS - 1);
      assert.equal(rows(), 1);
      await clock.advance(1);
      assert.equal(rows(), 0);
      assert.equal(await quotas.total("api", endsAt - 1), undefined);
      assert.deepEqual(await meter.instance.counts(), []);
      assert.equal(meter.alarmAt, null);
    }
  });

  it("has rows of no more windows than have not been over for 30 s", async () => {
    const { quotas } = meter.instance;
    await clock.advanceTo(Math.ceil(clock.now / 1_000) * 1_000);
    for (let second = 0; second < 90; second += 1) {
      for (let charge = 0; charge < 3; charge += 1) {
        await quotas.charge("burst", [1]);
      }
      assert.deepEqual((await quotas.usage("burst")).used, [3, 0, 0, 0]);
      await clock.advance(1_000);
      // Those of this second and of the 29 before it; the 30th goes now.
      assert.equal(rows(), Math.min(second + 1, 30));
    }
    await clock.advance(GRACE_MS);
    assert.equal(rows(), 0);
    assert.deepEqual(await meter.instance.counts(), []);
  });

  it("outlives its object, and its rows go all the same", async () => {
    await meter.instance.quotas.charge("api", [7]);
    await meter.restart();
    assert.deepEqual((await meter.instance.quotas.charge("api", [1])).used, [8, 0, 0, 0]);
    await clock.advance(HOUR_MS);
    await meter.restart();
    assert.equal(rows(), 0);
  });
});

describe("effects", () => {
  it("are done with the charge, and not if it is refused", async () => {
    const { quotas } = meter.instance;
    const write = (text: string): Effects => meter.instance.write(text);
    await quotas.charge("api", [2], { limits: [3], effects: write("first") });
    await quotas.charge("api", [2], { limits: [3], effects: write("refused") });
    await quotas.charge("api", [0], { limits: [3], effects: write("of nothing") });
    assert.deepEqual(written(), ["first", "of nothing"]);
    assert.deepEqual((await quotas.usage("api")).used, [2, 0, 0, 0]);
  });

  it("that throw undo the charge, and their error is the verb's", async () => {
    const { quotas } = meter.instance;
    const thrown = new RangeError("no");
    for (const amount of [1, 0]) {
      const effects = (): void => {
        meter.instance.write("lost")();
        throw thrown;
      };
      await assert.rejects(quotas.charge("api", [amount], { effects }), thrown);
    }
    assert.deepEqual(written(), []);
    assert.deepEqual((await quotas.usage("api")).used, [0, 0, 0, 0]);
    assert.equal(rows(), 0);
    assert.deepEqual(await meter.instance.counts(), []);
  });
});

it("arguments are looked at", async () => {
  const { quotas } = meter.instance;
  const refused = (call: Promise<unknown>, as = "invalid") => assert.rejects(call, code(as));
  for (const name of ["", "other", "constructor", "__proto__", 7, undefined] as string[]) {
    await refused(quotas.charge(name, [1]), "unknown_kind");
    await refused(quotas.usage(name), "unknown_kind");
    await refused(quotas.total(name), "unknown_kind");
  }
  for (const amounts of [[], [1, 2, 3, 4, 5], [-1], [1.5], [Infinity], [Number.NaN], [2 ** 53], ["1"], [1n], [undefined], new Array(2), 1, undefined]) {
    await refused(quotas.charge("api", amounts as number[]));
  }
  for (const limits of [[], [1], [1, 2, 3, 4, 5], [1, -1], [1, 1.5], [1, 2 ** 53], [1, undefined], [1, -Infinity], 1, null]) {
    await refused(quotas.charge("api", [1, 1], { limits: limits as number[] }));
  }
  for (const options of [null, 7] as never[]) {
    await refused(quotas.charge("api", [1], options));
  }
  for (const at of [-1, Number.NaN, Infinity, 10 ** 15, new Date(Number.NaN)]) {
    await refused(quotas.total("api", at), "due_out_of_range");
  }
  assert.equal(await quotas.total("api", new Date(0)), undefined);
  assert.equal((await quotas.charge("api", [1])).outcome, "charged");
});

it("an object without quotas says so, and options are looked at", async () => {
  const withQuotas = (builtIns: unknown) =>
    class extends Meter {
      protected override builtIns(): BuiltIns {
        return builtIns as BuiltIns;
      }
    };
  const bare = await TestObject.open(clock, withQuotas({}));
  await assert.rejects(bare.instance.quotas.usage("api"), code("unknown_kind"));
  for (const window of [999, 34_560_000_001, 1_000.5, Number.NaN, "1000", undefined]) {
    await assert.rejects(TestObject.open(clock, withQuotas({ quotas: { api: { window } } })), code("invalid"));
  }
  for (const quotas of [7, { api: 7 }, { api: null }]) {
    await assert.rejects(TestObject.open(clock, withQuotas({ quotas })), code("invalid"));
  }
  for (const name of ["", "x".repeat(65)]) {
    await assert.rejects(TestObject.open(clock, withQuotas({ quotas: { [name]: { window: 1_000 } } })), code("invalid"));
  }
  for (const window of [1_000, 34_560_000_000]) {
    const edge = await TestObject.open(clock, withQuotas({ quotas: { ["x".repeat(64)]: { window } } }));
    assert.equal((await edge.instance.quotas.charge("x".repeat(64), [1])).outcome, "charged");
  }
});
