// Goal: outboxes as an object has them: outcomes commit with the object's own writes, are delivered in order and
// again after failures, and can be looked after. Method: an object under a virtual clock, with sinks that answer as
// a test wants.
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import {
  outbox,
  SinkError,
  TimerObject,
  type BuiltIns,
  type Delivery,
  type Outboxes,
} from "@dueline/durable-object/kinds";
import { TestClock, TestObject } from "@dueline/durable-object/testing";

interface Paid {
  readonly cents: number;
}

let said: (delivery: Delivery) => void | Promise<void> = () => undefined;
let told: Delivery[] = [];
let signals: AbortSignal[] = [];

function parsed(payload: unknown): Paid {
  if (typeof (payload as Paid | null)?.cents !== "number") {
    throw new TypeError("no cents");
  }
  return payload as Paid;
}

class Shop extends TimerObject<Record<string, never>> {
  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    this.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY)");
  }
  protected override handlers(): Record<string, never> {
    return {};
  }
  protected override builtIns(): BuiltIns {
    return {
      outboxes: {
        mail: (delivery) => {
          const { signal, ...rest } = delivery;
          told.push(rest as Delivery);
          signals.push(signal);
          return said(delivery);
        },
        paid: outbox<Paid>({
          parse: parsed,
          deliver: ({ payload, ...rest }) => {
            told.push({ ...rest, payload: payload.cents } as Delivery<never>);
          },
          rows: 2,
        }),
        strict: { deliver: (delivery) => said(delivery), retry: { attempts: 2, initial: 100, jitter: 0 }, deadline: 50 },
      },
    };
  }
  get outboxes(): Outboxes {
    return this.timers.outboxes;
  }
  order(id: string): () => void {
    return () => void this.ctx.storage.sql.exec("INSERT INTO orders VALUES (?)", id);
  }
  counts() {
    return this.timers.counts();
  }
}

let clock: TestClock;
let shop: TestObject<Shop>;
const ids = (): string[] => told.map(({ id }) => id);
const orders = (): unknown[] => shop.sql("SELECT id FROM orders").map(({ id }) => id);
const code = (code: string) => (error: unknown) => (error as { code?: string }).code === code;

beforeEach(async () => {
  said = () => undefined;
  told = [];
  signals = [];
  clock = TestClock.install();
  shop = await TestObject.open(clock, Shop);
});
afterEach(() => clock.uninstall());

describe("an outcome", () => {
  it("is delivered once its effects have committed, and the outbox comes to rest", async () => {
    const { outboxes, order } = shop.instance;
    const at = clock.now;
    const sequences = await outboxes.append(
      "mail",
      [{ id: "order-1", payload: { to: "ann" } }, { id: "order-2" }],
      { effects: order.call(shop.instance, "1") },
    );
    assert.deepEqual(sequences, [1, 2]);
    assert.deepEqual(orders(), ["1"]);
    const { bytes, count } = await outboxes.backlog("mail");
    assert.deepEqual([count, bytes], [2, "order-1".length + '{"to":"ann"}'.length + "order-2".length]);
    await clock.advance(10);
    const common = { outbox: "mail", writtenAt: at, attempt: 1 };
    assert.deepEqual(told, [
      { ...common, sequence: 1, id: "order-1", payload: { to: "ann" } },
      { ...common, sequence: 2, id: "order-2", payload: undefined },
    ]);
    assert.deepEqual(await outboxes.backlog("mail"), { count: 0, bytes: 0 });
    assert.deepEqual(await shop.instance.counts(), []);
    assert.equal(shop.alarmAt, null);
  });

  it("is not there if its effects throw", async () => {
    const { outboxes } = shop.instance;
    const thrown = new TypeError("no");
    const effects = (): void => {
      shop.instance.order("1")();
      throw thrown;
    };
    await assert.rejects(outboxes.append("mail", [{ id: "order-1" }], { effects }), thrown);
    assert.deepEqual([orders(), await outboxes.backlog("mail")], [[], { count: 0, bytes: 0 }]);
    await clock.advance(60_000);
    assert.deepEqual(told, []);
  });

  it("is delivered by the next instance of the object", async () => {
    await shop.instance.outboxes.append("mail", [{ id: "a" }]);
    await shop.restart();
    await clock.advance(1_000);
    assert.deepEqual(ids(), ["a"]);
  });

  it("carries bytes, and ids of every script", async () => {
    const id = "\u05e9\u05dc\u05d5\u05dd \u{1f600}";
    await shop.instance.outboxes.append("mail", [{ id, payload: new Uint8Array([0, 1, 255]) }]);
    await clock.advance(10);
    assert.deepEqual([told[0]?.id, told[0]?.payload], [id, new Uint8Array([0, 1, 255])]);
  });

  it("has the type that `parse` gives it, and is refused if that throws", async () => {
    const { outboxes } = shop.instance;
    await outboxes.append("paid", [{ id: "1", payload: { cents: 5 } }, { id: "2", payload: "free" }, { id: "3", payload: { cents: 7 } }]);
    await clock.advance(10);
    assert.deepEqual(told.map(({ payload }) => payload), [5, 7]);
    const { items } = await outboxes.dead("paid");
    assert.deepEqual(items, [
      {
        sequence: 2,
        reason: "refused",
        error: "the payload does not decode: no cents",
        attempt: 1,
        deadAt: items[0]?.deadAt,
        id: "2",
        payload: "free",
      },
    ]);
  });
});

describe("a sink", () => {
  it("that is unavailable keeps the order and costs no attempt", async () => {
    let isUp = false;
    said = ({ attempt }) => {
      assert.equal(attempt, 1);
      if (!isUp) {
        throw new SinkError("unavailable", "503");
      }
    };
    await shop.instance.outboxes.append("mail", [{ id: "a" }, { id: "b" }]);
    await clock.advance(20_000);
    assert.ok(ids().length >= 4 && ids().every((id) => id === "a"), ids().join());
    isUp = true;
    told = [];
    await clock.advance(40_000);
    assert.deepEqual(ids(), ["a", "b"]);
  });

  it("that asks for a pause gets it, unless somebody wakes the outbox", async () => {
    const { outboxes } = shop.instance;
    said = () => {
      throw new SinkError("unavailable", "429", { after: 3_600_000 });
    };
    await outboxes.append("mail", [{ id: "a" }]);
    await clock.advance(10);
    said = () => undefined;
    await outboxes.append("mail", [{ id: "b" }]);
    await clock.advance(3_590_000);
    assert.deepEqual(ids(), ["a"]);
    assert.equal(await outboxes.wake("mail"), true);
    await clock.advance(10);
    assert.deepEqual(ids(), ["a", "a", "b"]);
    assert.equal(await outboxes.wake("mail"), false);
  });

  it("that refuses an outcome has it set aside, and the others go on", async () => {
    const { outboxes } = shop.instance;
    said = ({ id }) => {
      if (id === "b") {
        throw new SinkError("refused", "410");
      }
    };
    await outboxes.append("mail", [{ id: "a" }, { id: "b", payload: 1 }, { id: "c" }]);
    await clock.advance(10);
    assert.deepEqual(ids(), ["a", "b", "c"]);
    const [dead] = (await outboxes.dead("mail")).items;
    assert.deepEqual([dead?.sequence, dead?.reason, dead?.error, dead?.id, dead?.payload], [2, "refused", "410", "b", 1]);
    said = () => undefined;
    assert.equal(await outboxes.requeue("mail", 2, { effects: shop.instance.order("again") }), 4);
    assert.equal(await outboxes.requeue("mail", 2, { effects: shop.instance.order("never") }), undefined);
    await clock.advance(10);
    assert.deepEqual([ids().at(-1), told.at(-1)?.sequence, orders()], ["b", 4, ["again"]]);
  });

  it("that throws anything else has failed: tried again, behind the others, and given up in the end", async () => {
    const { outboxes } = shop.instance;
    const attempts: [string, number][] = [];
    said = ({ id, attempt }) => {
      attempts.push([id, attempt]);
      if (id === "a") {
        throw new Error("500");
      }
    };
    await outboxes.append("strict", [{ id: "a" }, { id: "b" }]);
    await clock.advance(10);
    const [waiting] = (await outboxes.waiting("strict")).items;
    assert.deepEqual([waiting?.id, waiting?.attempt], ["a", 1]);
    assert.ok((waiting?.retryAt ?? 0) > clock.now);
    await clock.advance(5_000);
    assert.deepEqual(attempts.filter(([id]) => id === "a"), [["a", 1], ["a", 2]]);
    assert.deepEqual(attempts.filter(([id]) => id === "b"), [["b", 1]]);
    const [dead] = (await outboxes.dead("strict")).items;
    assert.deepEqual([dead?.reason, dead?.error, dead?.attempt], ["exhausted", "500", 2]);
  });

  it("that waits too long is told so by its signal, and has failed", async () => {
    let signal: AbortSignal | undefined;
    said = (delivery) => {
      ({ signal } = delivery);
      return new Promise(() => undefined);
    };
    await shop.instance.outboxes.append("strict", [{ id: "a" }]);
    await clock.advance(40);
    assert.equal(signal?.aborted, false);
    await clock.advance(20);
    assert.equal(signal?.aborted, true);
    const [waiting] = (await shop.instance.outboxes.waiting("strict")).items;
    assert.equal(waiting?.attempt, 1);
  });

  it("that is called holds its outbox for as long as all calls of a run may take", async () => {
    said = () => new Promise(() => undefined);
    await shop.instance.outboxes.append("mail", [{ id: "a" }]);
    const at = clock.now;
    await clock.settle();
    await clock.advance(1);
    assert.deepEqual(ids(), ["a"]);
    const [claimed] = await shop.instance.counts();
    assert.equal(claimed?.kind, "$outcome_delivery");
    assert.ok(Math.abs((claimed?.nextAt ?? 0) - at - 50_000) < 10, `${(claimed?.nextAt ?? 0) - at} ms`);
  });

  it("that returns something has failed: whoever forgets to look at an answer is told", async () => {
    said = () => Promise.resolve({ status: 500 }) as unknown as Promise<void>;
    await shop.instance.outboxes.append("strict", [{ id: "a" }]);
    await clock.advance(5_000);
    const [dead] = (await shop.instance.outboxes.dead("strict")).items;
    assert.match(dead?.error ?? "", /bad_outcome: the sink of `strict` returns nothing, or throws/);
  });
});

describe("an operator", () => {
  it("lists what waits, a page at a time, and sets an outcome aside", async () => {
    const { outboxes } = shop.instance;
    said = () => {
      throw new SinkError("unavailable", "503");
    };
    const at = clock.now;
    await outboxes.append("mail", [{ id: "a", payload: 1 }, { id: "b" }, { id: "c" }]);
    const first = await outboxes.waiting("mail", { limit: 2 });
    assert.deepEqual(first.items, [
      { sequence: 1, id: "a", payload: 1, writtenAt: at, attempt: 0 },
      { sequence: 2, id: "b", payload: undefined, writtenAt: at, attempt: 0 },
    ]);
    const rest = await outboxes.waiting("mail", first.next === undefined ? {} : { after: first.next });
    assert.deepEqual([rest.items.map(({ id }) => id), rest.next], [["c"], undefined]);
    assert.equal(await outboxes.setAside("mail", 1, "nobody wants it", { effects: shop.instance.order("a") }), true);
    assert.equal(await outboxes.setAside("mail", 1, "again", { effects: shop.instance.order("never") }), false);
    said = () => undefined;
    await clock.advance(60_000);
    assert.deepEqual(ids().slice(-2), ["b", "c"]);
    const [dead] = (await outboxes.dead("mail")).items;
    assert.deepEqual([dead?.reason, dead?.error], ["byHand", "nobody wants it"]);
    assert.equal(await outboxes.purge("mail", 1, { effects: shop.instance.order("purged") }), true);
    assert.equal(await outboxes.purge("mail", 1), false);
    assert.deepEqual((await outboxes.dead("mail")).items, []);
    assert.deepEqual(orders(), ["a", "purged"]);
  });

  it("sees an outbox that this version has no sink for wait", async () => {
    await assert.rejects(shop.instance.outboxes.append("old", [{ id: "a" }]), code("unknown_kind"));
    assert.deepEqual(await shop.instance.outboxes.backlog("old"), { count: 0, bytes: 0 });
  });
});

it("names, ids, sequences and payloads are looked at", async () => {
  const { outboxes } = shop.instance;
  const one = [{ id: "a" }];
  await assert.rejects(outboxes.append("", one), code("invalid"));
  await assert.rejects(outboxes.append("x".repeat(65), one), code("invalid"));
  await assert.rejects(outboxes.append("mail", []), code("invalid"));
  await assert.rejects(outboxes.append("mail", "a" as never), code("invalid"));
  await assert.rejects(outboxes.append("mail", [undefined as never]), code("invalid"));
  await assert.rejects(outboxes.append("mail", [{ id: "x".repeat(129) }]), code("invalid"));
  await assert.rejects(outboxes.append("mail", [{ id: "a", payload: 1n }]), code("payload_not_serializable"));
  const large = new Uint8Array(256 * 1_024 - 1);
  await assert.rejects(outboxes.append("mail", [{ id: "a", payload: new Uint8Array(256 * 1_024) }]), code("payload_too_large"));
  const many = Array.from({ length: 4 }, (_, index) => ({ id: `${index}`, payload: large }));
  await assert.rejects(outboxes.append("mail", many), code("invalid"));
  await assert.rejects(outboxes.append("mail", Array.from({ length: 96 }, () => ({ id: "a" }))), code("invalid"));
  await assert.rejects(outboxes.waiting("mail", { limit: 0 }), code("invalid"));
  await assert.rejects(outboxes.dead("mail", { after: -1 }), code("invalid"));
  await assert.rejects(outboxes.dead("mail", null as never), code("invalid"));
  await assert.rejects(outboxes.append("mail", one, null as never), code("invalid"));
  await assert.rejects(outboxes.append("mail", one, { effects: 7 as never }), code("invalid"));
  await assert.rejects(outboxes.requeue("mail", 1.5), code("invalid"));
  await assert.rejects(outboxes.purge("mail", undefined as never), code("invalid"));
  await assert.rejects(outboxes.setAside("mail", 1, undefined as never), code("invalid"));
  const most = Array.from({ length: 95 }, (_, index) => ({ id: `${index}` }));
  assert.equal((await outboxes.append("mail", most, { effects: shop.instance.order("most") })).length, 95);
  assert.equal((await outboxes.append("mail", [{ id: "x".repeat(128), payload: large }])).at(-1), 96);
  assert.throws(() => new SinkError("gone" as never, "x"), code("invalid"));
  assert.throws(() => new SinkError("failed", "x", { afterMs: 5 } as never), code("invalid"));
  assert.throws(() => new SinkError("failed", "x", { after: -1 }), code("due_out_of_range"));
});

describe("options", () => {
  const opened = (outboxes: unknown): Promise<unknown> => {
    class Wrong extends Shop {
      protected override builtIns(): BuiltIns {
        return { outboxes } as BuiltIns;
      }
    }
    return TestObject.open(clock, Wrong);
  };
  it("are looked at when the object is made", async () => {
    const deliver = (): void => undefined;
    await assert.rejects(opened({ mail: {} }), code("invalid"));
    await assert.rejects(opened({ mail: null }), code("invalid"));
    await assert.rejects(opened({ ["x".repeat(65)]: deliver }), code("invalid"));
    await assert.rejects(opened(7), code("invalid"));
    await assert.rejects(opened({ mail: { deliver, parse: 7 } }), code("invalid"));
    await assert.rejects(opened({ mail: { deliver, retry: 7 } }), code("invalid"));
    await assert.rejects(opened({ mail: { deliver, rows: 81 } }), code("invalid"));
    await assert.rejects(opened({ mail: { deliver, deadline: -1 } }), code("invalid"));
    await assert.rejects(opened({ mail: { deliver, budget: Number.NaN } }), code("invalid"));
    await assert.rejects(opened({ mail: { deliver, retry: { attempts: 0 } } }), code("invalid"));
  });
  it("an object without outboxes says so", async () => {
    class None extends Shop {
      protected override builtIns(): BuiltIns {
        return {};
      }
    }
    const none = await TestObject.open(clock, None);
    await assert.rejects(none.instance.outboxes.append("mail", [{ id: "a" }]), code("unknown_kind"));
    await assert.rejects(none.instance.outboxes.backlog("mail"), code("unknown_kind"));
  });
});
