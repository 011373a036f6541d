// Goal: many timers are scheduled by one commit, all of them or none, and an error says which was refused. Method: an
// object under a virtual clock, with each outcome and each refusal, its rows and its alarm looked at behind each.
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { dead, DuelineError, TimerObject, Timers, type Handlers, type ScheduleOfKind, type Settings } from "@dueline/durable-object";
import * as kinds from "@dueline/durable-object/kinds";
import { TestClock, TestObject } from "@dueline/durable-object/testing";
import { DurableObject } from "cloudflare:workers";
import { ErrorsTold } from "./errors-told.js";

type Kinds = { note: { text: string }; tick: undefined; bytes: Uint8Array };
type Wanted = ScheduleOfKind<Kinds>;

const HOUR_MS = 3_600_000;
let fired: string[] = [];
let databaseBytes: number | undefined;

class Room extends TimerObject<Kinds> {
  protected override settings(): Settings {
    return { log: false, ...(databaseBytes === undefined ? {} : { databaseBytes }) };
  }

  protected override handlers(): Handlers<Kinds> {
    const note = (text: string) => () => void fired.push(text);
    return {
      note: (timer) => {
        if (timer.payload.text === "fail") {
          throw new Error("as told");
        }
        return timer.payload.text === "die" ? dead("as told") : note(`${timer.name ?? "-"} ${timer.payload.text}`);
      },
      tick: (timer) => note(timer.name ?? "-"),
      bytes: (timer) => note(`${timer.payload.join()}`),
    };
  }

  async countsOf(): Promise<number> {
    return (await this.timers.counts()).reduce((sum, { timers }) => sum + timers, 0);
  }

  /** Whatever is done here commits with what is scheduled, if that is without a wait in between. */
  write(text: string): void {
    this.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS written (text TEXT)");
    this.ctx.storage.sql.exec("INSERT INTO written VALUES (?)", text);
  }
}

let errors: ErrorsTold;
let clock: TestClock;
let room: TestObject<Room>;

beforeEach(async () => {
  errors = new ErrorsTold();
  fired = [];
  databaseBytes = undefined;
  clock = TestClock.install({ now: "2030-06-01T00:00:00Z" });
  room = await TestObject.open(clock, Room);
});
afterEach(() => {
  clock.uninstall();
  // No refusal is a trap of the engine.
  assert.deepEqual(errors.told, []);
  errors.end();
});

/** Every row of the engine but its own counters, as it is stored. */
const rows = (): unknown[] => room.sql("SELECT hex(key) AS key, hex(value) AS value FROM dueline_kv ORDER BY key");

/** Nothing is scheduled, nothing is changed, and the error says why and of which. */
async function refuses(
  timers: readonly unknown[],
  code: string,
  refused: DuelineError["refused"],
  message: RegExp,
): Promise<void> {
  const before = [rows(), room.alarmAt];
  await assert.rejects(room.instance.scheduleMany(timers as Wanted[]), (error) => {
    assert.ok(error instanceof DuelineError, String(error));
    assert.equal(error.code, code);
    assert.deepEqual(error.refused, refused);
    assert.match(error.message, message);
    return true;
  });
  assert.deepEqual([rows(), room.alarmAt], before);
}

describe("all of them", () => {
  it("are scheduled in their order, of several kinds, named and not", async () => {
    const now = Date.now();
    const done = await room.instance.scheduleMany([
      { kind: "note", name: "b", after: 2 * HOUR_MS, payload: { text: "two" } },
      { kind: "tick", dueAt: new Date(now + HOUR_MS) },
      { kind: "note", after: 3 * HOUR_MS, payload: { text: "three" } },
      { kind: "bytes", name: "\u{1f552} caf\u00e9", dueAt: now + 4 * HOUR_MS, payload: new Uint8Array([0, 255, 7]) },
    ]);
    assert.deepEqual(
      done.map(({ dueAt, state, outcome }) => [dueAt - now, state, outcome]),
      [2, 1, 3, 4].map((hours) => [hours * HOUR_MS, "pending", "created"]),
    );
    assert.equal(new Set(done.map(({ generation }) => generation)).size, 4);
    assert.equal(room.alarmAt, now + HOUR_MS);
    const view = await room.instance.get("bytes", "\u{1f552} caf\u00e9");
    assert.deepEqual([view?.generation, view?.payload], [done[3]?.generation, new Uint8Array([0, 255, 7])]);
    await clock.advance(5 * HOUR_MS);
    assert.deepEqual(fired, ["-", "b two", "- three", "0,255,7"]);
  });

  it("meet their names as their policies say", async () => {
    const { instance } = room;
    const now = Date.now();
    const of = (name: string) => instance.schedule("note", { name, after: HOUR_MS, payload: { text: "old" } });
    const [kept, , , replaced] = [await of("kept"), await of("sooner"), await of("later"), await of("replaced")];
    const matched = await of("matched");
    const payload = { text: "new" };
    const done = await instance.scheduleMany([
      { kind: "note", name: "kept", policy: "ifAbsent", after: 1, payload },
      { kind: "note", name: "absent", policy: "ifAbsent", after: HOUR_MS, payload },
      { kind: "note", name: "sooner", policy: "keepEarliest", after: HOUR_MS / 2, payload },
      { kind: "note", name: "later", policy: "keepEarliest", after: 2 * HOUR_MS, payload },
      { kind: "note", name: "replaced", policy: "replace", after: 2 * HOUR_MS, payload },
      // Whoever names a generation replaces that one, whatever the policy.
      { kind: "note", name: "matched", policy: "ifAbsent", ifMatch: matched.generation, after: 3 * HOUR_MS, payload },
    ]);
    assert.deepEqual(
      done.map(({ dueAt, outcome }) => [(dueAt - now) / HOUR_MS, outcome]),
      [[1, "kept"], [1, "created"], [0.5, "replaced"], [1, "replaced"], [2, "replaced"], [3, "replaced"]],
    );
    assert.equal(done[0]?.generation, kept?.generation);
    assert.notEqual(done[4]?.generation, replaced?.generation);
    await clock.advance(HOUR_MS);
    assert.deepEqual(fired.sort(), ["absent new", "kept old", "later new", "sooner new"]);
    await clock.advance(2 * HOUR_MS);
    assert.deepEqual(fired.slice(4), ["replaced new", "matched new"]);
  });

  it("say what the timers do that stay, and replace those that were given up", async () => {
    const { instance } = room;
    for (const text of ["fail", "die"]) {
      await instance.schedule("note", { name: text, after: 1, payload: { text } });
    }
    await clock.advance(1_000);
    const again = (policy: "ifAbsent" | "replace") =>
      instance.scheduleMany(["fail", "die"].map((name) => ({ kind: "note", name, policy, after: 1, payload: { text: "again" } })));
    const told = async (policy: "ifAbsent" | "replace") => (await again(policy)).map(({ state, outcome }) => `${state} ${outcome}`);
    assert.deepEqual(await told("ifAbsent"), ["retrying kept", "dead kept"]);
    assert.deepEqual(await told("replace"), ["pending replaced", "pending created"]);
    await clock.advance(1_000);
    assert.deepEqual(fired.sort(), ["die again", "fail again"]);
  });

  it("may be none, or one, or 1,000, and no more", async () => {
    assert.deepEqual(await room.instance.scheduleMany([]), []);
    // All are due at once but for the last.
    const many = (count: number) =>
      Array.from({ length: count }, (_, n) => ({ kind: "tick", name: `${n}`, after: n === 999 ? HOUR_MS / 2 : HOUR_MS }) as const);
    assert.equal((await room.instance.scheduleMany(many(1))).length, 1);
    const done = await room.instance.scheduleMany(many(1_000));
    assert.deepEqual(
      done.map(({ outcome }) => outcome),
      Array.from({ length: 1_000 }, (_, n) => (n === 0 ? "replaced" : "created")),
    );
    assert.equal(room.alarmAt, Date.now() + HOUR_MS / 2);
    await refuses(many(1_001), "invalid", undefined, /at most 1000 timers, not 1001/);
    await clock.advance(HOUR_MS / 2);
    assert.deepEqual(fired, ["999"]);
    await clock.advance(HOUR_MS);
    assert.deepEqual(fired.sort(), many(1_000).map(({ name }) => name).sort());
  });

  it("may carry 8 MiB in one call, and no more", async () => {
    const payload = new Uint8Array(128 * 1024 - 1);
    const many = (count: number) => Array.from({ length: count }, () => ({ kind: "bytes", after: HOUR_MS, payload }) as const);
    assert.equal((await room.instance.scheduleMany(many(64))).length, 64);
    await refuses([...many(64), { kind: "bytes", after: 1, payload: new Uint8Array() }], "payload_too_large", undefined, /8388608 bytes.*65 timers/);
    assert.equal(await room.instance.countsOf(), 64);
  });

  it("outlive the object", async () => {
    await room.instance.scheduleMany(Array.from({ length: 300 }, (_, n) => ({ kind: "note", after: HOUR_MS + n, payload: { text: `${n}` } })));
    await room.restart();
    assert.equal(room.alarmAt, Date.now() + HOUR_MS);
    await clock.advance(2 * HOUR_MS);
    assert.deepEqual(fired, Array.from({ length: 300 }, (_, n) => `- ${n}`));
  });

  it("may be scheduled by calls beside others", async () => {
    const { instance } = room;
    const calls = Array.from({ length: 20 }, (_, call) =>
      instance.scheduleMany([
        { kind: "tick", name: "shared", after: HOUR_MS + call },
        { kind: "tick", name: `own ${call}`, after: HOUR_MS },
      ]),
    );
    const done = await Promise.all(calls);
    assert.equal(done.filter(([shared]) => shared?.outcome === "created").length, 1);
    assert.equal(await instance.countsOf(), 21);
    assert.equal((await instance.get("tick", "shared"))?.generation, done[19]?.[0]?.generation);
  });
});

describe("none of them", () => {
  const good: Wanted = { kind: "tick", name: "good", after: 1 };
  const at = (index: number, kind: string, name?: string) => ({ index, kind, ...(name === undefined ? {} : { name }) });

  it("is scheduled if one is wrong", async () => {
    await room.instance.schedule("tick", { name: "there", after: HOUR_MS });
    const cyclic: Record<string, unknown> = {};
    cyclic["self"] = cyclic;
    const wrong: [unknown, string, DuelineError["refused"], RegExp][] = [
      [{ kind: "tock", after: 1 }, "unknown_kind", at(1, "tock"), /^unknown_kind: timer 1 `tock`: no handler/],
      [{ kind: "tick", name: "", after: 1 }, "invalid", at(1, "tick", ""), /^invalid: timer 1 `tick` "": a name is/],
      [{ kind: "tick", name: "x".repeat(513), after: 1 }, "invalid", at(1, "tick", "x".repeat(513)), /timer 1 `tick` "x{100}\.\.\."/],
      [{ kind: "tick", name: "a" }, "invalid", at(1, "tick", "a"), /timer 1 `tick` "a": a timer needs one of/],
      [{ kind: "tick", after: -1 }, "due_out_of_range", at(1, "tick"), /^due_out_of_range: timer 1 `tick`: after is a span/],
      [{ kind: "tick", dueAt: Number.NaN }, "due_out_of_range", at(1, "tick"), /dueAt is a time/],
      [{ kind: "tick", after: 1, policy: "replace" }, "invalid", at(1, "tick"), /`policy` is for a timer with a name/],
      [{ kind: "tick", name: "a", after: 1, policy: "latest" }, "invalid", at(1, "tick", "a"), /a policy is/],
      [{ kind: "tick", after: 1, ifMatch: "1" }, "invalid", at(1, "tick"), /`ifMatch` is for a timer with a name/],
      [{ kind: "tick", name: "a", after: 1, ifMatch: 1 }, "invalid", at(1, "tick", "a"), /`ifMatch` is a string/],
      [{ kind: "tick", name: "a", after: 1, ifMatch: "x" }, "invalid", at(1, "tick", "a"), /not a generation/],
      [{ kind: "tick", name: "a", after: 1, ifMatch: `${2n ** 64n}` }, "invalid", at(1, "tick", "a"), /not a generation/],
      [{ kind: "note", after: 1, payload: cyclic }, "payload_not_serializable", at(1, "note"), /timer 1 `note`: the payload has no JSON/],
      [{ kind: "bytes", after: 1, payload: new Uint8Array(491_520) }, "payload_too_large", at(1, "bytes"), /timer 1 `bytes`: a payload/],
      [{ kind: "tick", name: "a", after: 1, ifMatch: "1" }, "not_found", at(1, "tick", "a"), /^not_found: timer 1 `tick` "a": /],
      [{ kind: "tick", name: "good", after: 2 }, "invalid", at(1, "tick", "good"), /schedules a name once, and timer 0 has/],
      [null, "invalid", at(1, "undefined"), /^invalid: timer 1: a timer: an object is wanted, not null/],
      [5, "invalid", at(1, "undefined"), /an object is wanted, not 5/],
      [{ kind: Object.create(null) as never, after: 1 }, "unknown_kind", at(1, "an empty object"), /timer 1 `an empty object`/],
    ];
    for (const [one, code, refused, message] of wrong) {
      await refuses([good, one, { kind: "tick", after: 1 }], code, refused, message);
    }
    await refuses([good, , { kind: "tick", after: 1 }] as unknown[], "invalid", at(1, "undefined"), /an object is wanted, not undefined/);
    for (const list of [null, undefined, 5, "tick", { length: 1 }]) {
      await refuses(list as never, "invalid", undefined, /timers are a list of 0 to 1000/);
    }
    // The same name of another kind is another name.
    assert.equal((await room.instance.scheduleMany([good, { kind: "note", name: "good", after: 1, payload: { text: "" } }])).length, 2);
  });

  it("is scheduled if one has another generation", async () => {
    const { generation } = await room.instance.schedule("tick", { name: "there", after: HOUR_MS });
    await assert.rejects(
      room.instance.scheduleMany([good, { kind: "tick", name: "there", after: 1, ifMatch: "1" }]),
      (error) => error instanceof DuelineError && error.current === generation && error.code === "generation_mismatch",
    );
    await refuses(
      [good, { kind: "tick", name: "there", after: 1, ifMatch: "1" }],
      "generation_mismatch",
      at(1, "tick", "there"),
      /^generation_mismatch: timer 1 `tick` "there": /,
    );
  });

  it("is scheduled if the database fills up in between", async () => {
    databaseBytes = 2 * 1024 * 1024;
    await room.restart();
    const payload = new Uint8Array(64 * 1024);
    const many = Array.from({ length: 60 }, () => ({ kind: "bytes", after: 1, payload }) as const);
    const before = rows();
    await assert.rejects(
      room.instance.scheduleMany(many),
      (error) => error instanceof DuelineError && error.code === "full" && error.refused === undefined,
    );
    assert.deepEqual(rows(), before);
    assert.equal((await room.instance.scheduleMany(many.slice(0, 4))).length, 4);
  });

  it("is scheduled from within effects", async () => {
    class Effects extends DurableObject {
      readonly timers: Timers<{ tick: undefined; other: undefined }> = new Timers<{ tick: undefined; other: undefined }>(this.ctx, {
        log: false,
        handlers: () => ({ tick: () => () => void this.timers.scheduleMany([{ kind: "other", after: 1 }]).catch((error) => fired.push(error.code)), other: () => undefined }),
      });

      override async alarm(info?: AlarmInvocationInfo): Promise<void> {
        await this.timers.alarm(info);
      }
    }
    const object = await TestObject.open(clock, Effects);
    await object.instance.timers.schedule("tick", { after: 1 });
    await clock.advance(HOUR_MS);
    assert.deepEqual(fired, ["in_effects"]);
    assert.deepEqual(await object.instance.timers.counts(), []);
  });
});

it("a write in front of them commits with them", async () => {
  room.instance.write("in front");
  await room.instance.scheduleMany([{ kind: "tick", after: 1 }]);
  assert.deepEqual(room.sql("SELECT text FROM written"), [{ text: "in front" }]);
});

it("the entry with the built-in kinds has the same verb", async () => {
  class Built extends kinds.TimerObject<Kinds> {
    protected override handlers(): Handlers<Kinds> {
      return { note: () => undefined, tick: () => () => void fired.push("tick"), bytes: () => undefined };
    }
    protected override builtIns(): kinds.BuiltIns {
      return { leases: { drain: () => "drained" } };
    }
  }
  const object = await TestObject.open(clock, Built);
  const done = await object.instance.scheduleMany([{ kind: "tick", name: "a", after: 1 }, { kind: "tick", after: 2 }]);
  assert.deepEqual(done.map(({ outcome }) => outcome), ["created", "created"]);
  await assert.rejects(object.instance.scheduleMany([{ kind: "tick", name: "b", after: 1 }, { kind: "$lease_expiry" as "tick", after: 2 }]));
  await clock.advance(HOUR_MS);
  assert.deepEqual(fired, ["tick", "tick"]);
});
