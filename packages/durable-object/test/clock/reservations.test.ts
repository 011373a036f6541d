// Goal: reservations as an object has them: one end each, deadlines kept to the millisecond, effects that commit
// with the end. Method: an object under a virtual clock, with a table of seats beside the reservations.
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import {
  TimerObject,
  type BuiltIns,
  type Effects,
  type Reservation,
  type Reservations,
  type Settlement,
} from "@dueline/durable-object/kinds";
import { TestClock, TestObject } from "@dueline/durable-object/testing";

type OnAbandon = (reservation: Reservation) => Effects | void | Promise<Effects | void>;

let onAbandon: OnAbandon;
let asked: Reservation[] = [];
let told: [id: string, payload: unknown][] = [];

class Hall extends TimerObject<Record<string, never>> {
  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    this.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS log (text TEXT NOT NULL)");
  }
  protected override handlers(): Record<string, never> {
    return {};
  }
  protected override builtIns(): BuiltIns {
    return {
      reservations: {
        onAbandon: (reservation) => {
          asked.push(reservation);
          return onAbandon(reservation);
        },
      },
      outboxes: { ends: async ({ id, payload }) => void told.push([id, payload]) },
    };
  }
  get reservations(): Reservations {
    return this.timers.reservations;
  }
  log(text: string): Effects {
    return () => void this.ctx.storage.sql.exec("INSERT INTO log VALUES (?)", text);
  }
  counts() {
    return this.timers.counts();
  }
}

let clock: TestClock;
let hall: TestObject<Hall>;
const logged = (): unknown[] => hall.sql("SELECT text FROM log").map(({ text }) => text);
const code = (code: string) => (error: unknown) => (error as { code?: string }).code === code;

beforeEach(async () => {
  onAbandon = ({ id }) => hall.instance.log(`${id} abandoned`);
  asked = [];
  told = [];
  clock = TestClock.install();
  hall = await TestObject.open(clock, Hall);
});
afterEach(() => clock.uninstall());

/** The reservation of what was done, which must have this outcome. */
function of(done: Settlement, outcome: Settlement["outcome"]): Reservation {
  assert.equal(done.outcome, outcome);
  assert.ok("reservation" in done);
  return done.reservation;
}

describe("a reservation", () => {
  it("is made once, and then read as it was made", async () => {
    const { reservations } = hall.instance;
    const detail = { holder: "ann", seats: [1, 2] };
    const made = await reservations.reserve("12A", { commitWithin: 60_000, detail });
    const { serial } = made.reservation;
    assert.match(serial, /^\d+$/);
    assert.deepEqual(made, {
      outcome: "made",
      reservation: {
        id: "12A",
        serial,
        state: "pending",
        reservedAt: clock.now,
        commitBy: clock.now + 60_000,
        deadline: clock.now + 61_000,
        detail,
      },
    });
    const again = await reservations.reserve("12A", { commitWithin: 1, detail: "bob" });
    assert.deepEqual(again, { outcome: "exists", reservation: made.reservation });
    assert.deepEqual(await reservations.get("12A"), made.reservation);
    assert.equal(await reservations.get("12B"), undefined);
  });

  it("keeps details of every form", async () => {
    const { reservations } = hall.instance;
    for (const [index, detail] of [undefined, null, 0, "\u05e9\u05dc\u05d5\u05dd \u{1f600}", [{}], "x".repeat(32_766)].entries()) {
      const { reservation } = await reservations.reserve(`of ${index}`, { commitWithin: 1_000, detail });
      assert.deepEqual(reservation.detail, detail);
    }
    const bytes = await reservations.reserve("bytes", { commitWithin: 1_000, detail: new Uint8Array([0, 1, 255]) });
    assert.deepEqual(bytes.reservation.detail, new Uint8Array([0, 1, 255]));
  });

  it("is committed up to its latest commit, and ends once", async () => {
    const { reservations } = hall.instance;
    const { reservation } = await reservations.reserve("12A", { commitWithin: 60_000, skew: 50 });
    const { serial } = reservation;
    await clock.advance(60_000);
    const committed = of(await reservations.commit("12A", { serial }), "settled");
    assert.deepEqual(committed, { ...reservation, state: "committed", endedAt: clock.now });
    for (const late of [
      reservations.commit("12A", { serial }),
      reservations.abort("12A", { serial, reason: "no" }),
      reservations.extend("12A", { serial, detail: 1, commitWithin: 1 }),
    ]) {
      assert.deepEqual(of(await late, "ended_before"), committed);
    }
    await clock.advance(60_000);
    assert.deepEqual(await reservations.get("12A"), committed);
    assert.deepEqual(asked, []);
    assert.deepEqual(await hall.instance.counts(), []);
  });

  it("is too late to commit behind that, is abandoned at the deadline, and not a millisecond before", async () => {
    const { reservations } = hall.instance;
    const { reservation } = await reservations.reserve("12A", { commitWithin: 60_000, skew: 50 });
    const { serial } = reservation;
    await clock.advance(60_001);
    const lateCommit = await reservations.commit("12A", { serial });
    assert.deepEqual(of(lateCommit, "too_late"), reservation);
    const lateExtend = await reservations.extend("12A", { serial, detail: 1, commitWithin: 1 });
    assert.deepEqual(of(lateExtend, "too_late"), reservation);
    await clock.advance(48);
    assert.equal((await reservations.get("12A"))?.state, "pending");
    await clock.advance(1);
    const abandoned = { ...reservation, state: "abandoned", endedAt: reservation.deadline };
    assert.deepEqual(await reservations.get("12A"), abandoned);
    assert.deepEqual(of(await reservations.commit("12A", { serial }), "ended_before"), abandoned);
    assert.deepEqual(asked, [abandoned]);
    assert.deepEqual(logged(), ["12A abandoned"]);
  });

  it("is aborted for a reason, between the latest commit and the deadline too", async () => {
    const { reservations } = hall.instance;
    const { reservation } = await reservations.reserve("12A", { commitWithin: 1_000 });
    await clock.advance(1_500);
    const aborted = of(await reservations.abort("12A", { serial: reservation.serial, reason: "cancelled" }), "settled");
    assert.deepEqual(aborted, { ...reservation, state: "aborted", reason: "cancelled", endedAt: clock.now });
    await clock.advance(60_000);
    assert.deepEqual(asked, []);
  });

  it("is extended with another detail, never to an earlier time", async () => {
    const { reservations } = hall.instance;
    const { reservation } = await reservations.reserve("12A", { commitWithin: 60_000, detail: "held" });
    const { serial } = reservation;
    const sooner = of(await reservations.extend("12A", { serial, detail: "paying", commitWithin: 1 }), "settled");
    assert.deepEqual(sooner, { ...reservation, detail: "paying" });
    const later = of(await reservations.extend("12A", { serial, detail: "paying", commitWithin: 120_000 }), "settled");
    assert.equal(later.commitBy, clock.now + 120_000);
    assert.equal(later.deadline, clock.now + 121_000);
    await clock.advance(100_000);
    assert.deepEqual(await reservations.get("12A"), later);
    await clock.advance(21_000);
    assert.equal((await reservations.get("12A"))?.state, "abandoned");
  });

  it("of the same id and another serial is another", async () => {
    const { reservations } = hall.instance;
    const first = (await reservations.reserve("12A", { commitWithin: 1_000, keepFor: 0 })).reservation;
    of(await reservations.abort("12A", { serial: first.serial, reason: "" }), "settled");
    const second = (await reservations.reserve("12A", { commitWithin: 1_000 })).reservation;
    assert.notEqual(second.serial, first.serial);
    for (const late of [
      reservations.commit("12A", { serial: first.serial }),
      reservations.abort("12A", { serial: first.serial, reason: "no" }),
      reservations.extend("12A", { serial: first.serial, detail: 1, commitWithin: 1 }),
      reservations.forget("12A", { serial: first.serial }),
    ]) {
      assert.deepEqual(await late, { outcome: "missing" });
    }
    assert.deepEqual(await reservations.get("12A"), second);
  });

  it("that has ended goes when it was kept long enough, or is forgotten", async () => {
    const { reservations } = hall.instance;
    const kept = (await reservations.reserve("kept", { commitWithin: 1_000, keepFor: 10_000 })).reservation;
    const { serial } = (await reservations.reserve("stays", { commitWithin: 1_000 })).reservation;
    assert.equal((await reservations.forget("stays", { serial })).outcome, "still_pending");
    const ended = of(await reservations.commit("kept", { serial: kept.serial }), "settled");
    assert.equal(ended.keptUntil, clock.now + 10_000);
    of(await reservations.commit("stays", { serial }), "settled");
    await clock.advance(9_999);
    assert.deepEqual(await reservations.get("kept"), ended);
    await clock.advance(1);
    assert.equal(await reservations.get("kept"), undefined);
    await clock.advance(86_400_000);
    assert.equal((await reservations.get("stays"))?.state, "committed");
    assert.deepEqual(await reservations.forget("stays", { serial }), { outcome: "forgotten" });
    assert.deepEqual(await reservations.forget("stays", { serial }), { outcome: "missing" });
    assert.equal(hall.alarmAt, null);
  });

  it("outlives its object", async () => {
    const { reservation } = await hall.instance.reservations.reserve("12A", { commitWithin: 60_000, detail: "ann" });
    await hall.restart();
    assert.deepEqual(await hall.instance.reservations.get("12A"), reservation);
    await clock.advance(30_000);
    await hall.restart();
    await clock.advance(31_000);
    assert.deepEqual(logged(), ["12A abandoned"]);
  });
});

describe("effects", () => {
  it("are done with what they go with, and not if nothing changes", async () => {
    const { reservations } = hall.instance;
    const log = (text: string): Effects => hall.instance.log(text);
    const { serial } = (await reservations.reserve("12A", { commitWithin: 1_000, effects: log("reserved") })).reservation;
    await reservations.reserve("12A", { commitWithin: 1_000, effects: log("twice") });
    await reservations.extend("12A", { serial, detail: 1, commitWithin: 2_000, effects: log("extended") });
    await reservations.commit("12A", { serial: "1", effects: log("another") });
    await reservations.commit("12A", { serial, effects: log("committed") });
    await reservations.commit("12A", { serial, effects: log("twice") });
    await reservations.abort("12A", { serial, reason: "", effects: log("late") });
    const { serial: other } = (await reservations.reserve("12B", { commitWithin: 1_000 })).reservation;
    await reservations.abort("12B", { serial: other, reason: "", effects: log("aborted") });
    const { serial: late } = (await reservations.reserve("12C", { commitWithin: 1_000 })).reservation;
    await clock.advance(1_001);
    await reservations.commit("12C", { serial: late, effects: log("late") });
    assert.deepEqual(logged(), ["reserved", "extended", "committed", "aborted"]);
  });

  it("that throw undo the change, and their error is the verb's", async () => {
    const { reservations } = hall.instance;
    const thrown = new RangeError("no");
    const effects = (): void => {
      hall.instance.log("lost")();
      throw thrown;
    };
    await assert.rejects(reservations.reserve("12A", { commitWithin: 1_000, effects }), thrown);
    assert.equal(await reservations.get("12A"), undefined);
    const { reservation } = await reservations.reserve("12A", { commitWithin: 1_000 });
    await assert.rejects(reservations.commit("12A", { serial: reservation.serial, effects }), thrown);
    assert.deepEqual(await reservations.get("12A"), reservation);
    assert.deepEqual(logged(), []);
  });

  it("that are asynchronous are refused", async () => {
    const { reservations } = hall.instance;
    const effects = (async () => undefined) as unknown as Effects;
    await assert.rejects(reservations.reserve("12A", { commitWithin: 1_000, effects }), code("effects_async"));
    assert.equal(await reservations.get("12A"), undefined);
  });
});

describe("onAbandon", () => {
  it("may return nothing, or be asynchronous", async () => {
    const { reservations } = hall.instance;
    onAbandon = async ({ id, detail }) => {
      await Promise.resolve();
      return id === "silent" ? undefined : hall.instance.log(`${id} of ${String(detail)}`);
    };
    await reservations.reserve("silent", { commitWithin: 1_000 });
    await reservations.reserve("12A", { commitWithin: 1_000, detail: "ann" });
    await clock.advance(2_000);
    assert.deepEqual(logged(), ["12A of ann"]);
    assert.equal((await reservations.get("silent"))?.state, "abandoned");
  });

  for (const [what, broken] of [
    ["throws", () => assert.fail("the seats are not there yet")],
    ["returns what is no effects", () => 7 as unknown as Effects],
    ["returns asynchronous effects", () => (async () => undefined) as unknown as Effects],
    [
      "returns effects that throw",
      () => () => {
        hall.instance.log("lost")();
        throw new Error("no");
      },
    ],
  ] as [string, OnAbandon][]) {
    it(`that ${what} leaves it pending, and is asked again`, async () => {
      const { reservations } = hall.instance;
      const works = onAbandon;
      onAbandon = broken;
      const { serial } = (await reservations.reserve("12A", { commitWithin: 1_000 })).reservation;
      await clock.advance(2_000);
      assert.equal((await reservations.get("12A"))?.state, "pending");
      assert.deepEqual(logged(), []);
      assert.equal((await reservations.commit("12A", { serial })).outcome, "too_late");
      onAbandon = works;
      await clock.advance(7_000);
      assert.equal((await reservations.get("12A"))?.state, "abandoned");
      assert.equal(asked.length, 2);
      assert.deepEqual(logged(), ["12A abandoned"]);
    });
  }

  it("that hangs is asked again behind 5 s, and what it brings back then is dropped", async () => {
    const { reservations } = hall.instance;
    const works = onAbandon;
    let bringBack: (effects: Effects) => void = () => assert.fail();
    onAbandon = () =>
      new Promise((resolve) => {
        bringBack = resolve;
      });
    await reservations.reserve("12A", { commitWithin: 1_000 });
    await clock.advance(2_000);
    onAbandon = works;
    await clock.advance(4_999);
    assert.equal(asked.length, 1);
    await clock.advance(10_000);
    assert.equal(asked.length, 2);
    bringBack(hall.instance.log("too late"));
    await clock.advance(60_000);
    assert.equal((await reservations.get("12A"))?.state, "abandoned");
    assert.deepEqual(logged(), ["12A abandoned"]);
  });

  it("is asked of each of many that are over together", async () => {
    const { reservations } = hall.instance;
    const ids = Array.from({ length: 150 }, (_, index) => `seat-${index}`);
    await Promise.all(ids.map((id) => reservations.reserve(id, { commitWithin: 1_000, keepFor: 0 })));
    // More than one alarm serves.
    await clock.advance(2_010);
    assert.deepEqual(logged().sort(), ids.map((id) => `${id} abandoned`).sort());
    assert.deepEqual(await hall.instance.counts(), []);
    assert.deepEqual((await Promise.all(ids.map((id) => reservations.get(id)))).filter(Boolean), []);
  });
});

describe("the outbox of a reservation", () => {
  it("is told of each end once, with the end itself", async () => {
    const { reservations } = hall.instance;
    const terms = { commitWithin: 1_000, outbox: "ends" };
    const { serial } = (await reservations.reserve("12A", { ...terms, detail: { holder: "ann" } })).reservation;
    await reservations.reserve("12B", terms);
    const { serial: other } = (await reservations.reserve("12C", { ...terms, keepFor: 0 })).reservation;
    const committedAt = clock.now;
    await reservations.commit("12A", { serial });
    await reservations.commit("12A", { serial });
    await reservations.abort("12C", { serial: other, reason: "no" });
    await clock.advance(60_000);
    const messages = told.map(([, payload]) => payload as { reservation: string });
    messages.sort((a, b) => a.reservation.localeCompare(b.reservation));
    const { endedAt, serial: third } = (await reservations.get("12B")) ?? assert.fail();
    assert.deepEqual(messages, [
      { reservation: "12A", serial, end: "committed", ended_at_ms: committedAt, detail: '{"holder":"ann"}' },
      { reservation: "12B", serial: third, end: "abandoned", ended_at_ms: endedAt },
      { reservation: "12C", serial: other, end: "aborted", reason: "no", ended_at_ms: committedAt },
    ]);
    assert.equal(new Set(told.map(([id]) => id)).size, 3);
  });

  it("is told nothing of an end whose effects throw", async () => {
    const { reservations } = hall.instance;
    const { serial } = (await reservations.reserve("12A", { commitWithin: 60_000, outbox: "ends" })).reservation;
    const effects = (): void => {
      throw new RangeError("no");
    };
    await assert.rejects(reservations.commit("12A", { serial, effects }), RangeError);
    await clock.advance(50_000);
    assert.deepEqual(told, []);
  });
});

it("arguments are looked at", async () => {
  const { reservations } = hall.instance;
  const terms = { commitWithin: 1_000 };
  const serial = "1";
  const refused = (call: Promise<unknown>, as: string) => assert.rejects(call, code(as));
  for (const id of ["", "x".repeat(97), "\u05d0".repeat(49), "\ud800", 7, undefined, null] as string[]) {
    await refused(reservations.reserve(id, terms), "invalid");
    await refused(reservations.commit(id, { serial }), "invalid");
    await refused(reservations.abort(id, { serial, reason: "" }), "invalid");
    await refused(reservations.extend(id, { serial, detail: 1, commitWithin: 1 }), "invalid");
    await refused(reservations.forget(id, { serial }), "invalid");
    await refused(reservations.get(id), "invalid");
  }
  for (const serial of ["", "x", "-1", "1.5", "18446744073709551616", 1, 1n, undefined] as string[]) {
    await refused(reservations.commit("12A", { serial }), "invalid");
    await refused(reservations.abort("12A", { serial, reason: "" }), "invalid");
    await refused(reservations.extend("12A", { serial, detail: 1, commitWithin: 1 }), "invalid");
    await refused(reservations.forget("12A", { serial }), "invalid");
  }
  for (const span of [-1, Number.NaN, Infinity, "1", undefined, null] as number[]) {
    await refused(reservations.reserve("12A", { commitWithin: span }), "due_out_of_range");
    await refused(reservations.extend("12A", { serial, detail: 1, commitWithin: span }), "due_out_of_range");
  }
  for (const span of [-1, Number.NaN, "1", null] as number[]) {
    await refused(reservations.reserve("12A", { ...terms, skew: span }), "due_out_of_range");
    await refused(reservations.reserve("12A", { ...terms, keepFor: span }), "due_out_of_range");
  }
  await refused(reservations.reserve("12A", { commitWithin: 253_402_300_799_999 }), "invalid");
  for (const outbox of ["", "other", 7, null] as string[]) {
    await refused(reservations.reserve("12A", { ...terms, outbox }), "unknown_kind");
  }
  for (const options of [undefined, null, 7] as never[]) {
    await refused(reservations.reserve("12A", options), "invalid");
    await refused(reservations.commit("12A", options), "invalid");
    await refused(reservations.abort("12A", options), "invalid");
    await refused(reservations.extend("12A", options), "invalid");
    await refused(reservations.forget("12A", options), "invalid");
  }
  await refused(reservations.reserve("12A", { ...terms, detail: "x".repeat(32_767) }), "payload_too_large");
  await refused(reservations.reserve("12A", { ...terms, detail: () => 1 }), "payload_not_serializable");
  await refused(reservations.extend("12A", { serial, detail: 1n, commitWithin: 1 }), "payload_not_serializable");
  for (const reason of ["x".repeat(256), "\ud800", 7, undefined] as string[]) {
    await refused(reservations.abort("12A", { serial, reason }), "invalid");
  }
  // None of it has reached the engine, or it would have to be opened anew.
  const { reservation } = await reservations.reserve("12A", terms);
  of(await reservations.abort("12A", { serial: reservation.serial, reason: "\u05d0".repeat(127) }), "settled");
});

it("an object without reservations says so, and options are looked at", async () => {
  class Bare extends Hall {
    protected override builtIns(): BuiltIns {
      return {};
    }
  }
  const bare = await TestObject.open(clock, Bare);
  await assert.rejects(bare.instance.reservations.get("12A"), code("unknown_kind"));
  for (const reservations of [{ onAbandon: 7 }, 7]) {
    class Wrong extends Hall {
      protected override builtIns(): BuiltIns {
        return { reservations } as never;
      }
    }
    await assert.rejects(TestObject.open(clock, Wrong), code("invalid"));
  }
});
