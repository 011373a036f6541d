// Goal: what the storage refuses while many timers are scheduled leaves none of them, and what it refuses behind the
// commit is told as not known. Method: an object whose storage refuses one thing for a while, and a call behind it.
import assert from "node:assert/strict";
import { afterEach, beforeEach, it } from "node:test";
import { DuelineError, Timers } from "@dueline/durable-object";
import { TestClock, TestObject } from "@dueline/durable-object/testing";
import { DurableObject } from "cloudflare:workers";

const HOUR_MS = 3_600_000;
const COUNT = 50;

/** What is refused, once: a transaction, a statement of it, the alarm at once, or the alarm later. */
type Refusal = "transaction" | "statement" | "full" | "alarm" | "alarm later";
let refusal: Refusal | undefined;
/** Statements that may still be run before one is refused. */
let left = 0;

/** As `ctx`, but its storage refuses as it is told. */
function refusing(ctx: DurableObjectState): DurableObjectState {
  const { storage } = ctx;
  const exec = (statement: string, ...bindings: unknown[]): unknown => {
    if ((refusal === "statement" || refusal === "full") && statement.startsWith("INSERT")) {
      left -= 1;
      if (left < 0) {
        throw new Error(refusal === "full" ? "database or disk is full: SQLITE_FULL" : "disk I/O error: SQLITE_IOERR");
      }
    }
    return storage.sql.exec(statement, ...bindings);
  };
  const sql = new Proxy(storage.sql, { get: (target, key) => (key === "exec" ? exec : (Reflect.get(target, key) as unknown)) });
  const refusingStorage = new Proxy(storage, {
    get: (target, key) => {
      if (key === "sql") {
        return sql;
      }
      if (key === "transactionSync" && refusal === "transaction") {
        return () => {
          throw new Error("no transaction today");
        };
      }
      if (key === "setAlarm" && refusal === "alarm") {
        return () => {
          throw new Error("no alarm today");
        };
      }
      if (key === "setAlarm" && refusal === "alarm later") {
        return () => Promise.reject(new Error("no alarm after all"));
      }
      return Reflect.get(target, key) as unknown;
    },
  });
  return new Proxy(ctx, { get: (target, key) => (key === "storage" ? refusingStorage : (Reflect.get(target, key) as unknown)) });
}

let fired: string[] = [];

class Room extends DurableObject {
  readonly timers = new Timers<{ tick: undefined }>(refusing(this.ctx), {
    log: false,
    handlers: { tick: (timer) => () => void fired.push(timer.name ?? "-") },
  });

  override async alarm(info?: AlarmInvocationInfo): Promise<void> {
    await this.timers.alarm(info);
  }
}

let clock: TestClock;
let room: TestObject<Room>;

beforeEach(async () => {
  fired = [];
  refusal = undefined;
  clock = TestClock.install();
  room = await TestObject.open(clock, Room);
  await room.instance.timers.schedule("tick", { name: "there", after: 2 * HOUR_MS });
});
afterEach(() => clock.uninstall());

const rows = (): unknown[] => room.sql("SELECT hex(key) AS key, hex(value) AS value FROM dueline_kv ORDER BY key");

/** Half of them with names, one of which is there. */
const wanted = Array.from({ length: COUNT }, (_, index) => ({
  kind: "tick" as const,
  after: HOUR_MS,
  ...(index % 2 === 0 ? { name: index === 20 ? "there" : `name ${index}` } : {}),
}));

async function fails(code: string): Promise<void> {
  await assert.rejects(
    room.instance.timers.scheduleMany(wanted),
    (error) => error instanceof DuelineError && error.code === code && error.refused === undefined,
    code,
  );
  refusal = undefined;
}

const REFUSALS: [Refusal, string, number][] = [
  ["transaction", "unavailable", 0],
  ["alarm", "unavailable", 0],
  ["statement", "unavailable", 0],
  ["statement", "unavailable", 30],
  ["full", "full", 0],
  ["full", "full", 60],
];
for (const [what, code, statements] of REFUSALS) {
  it(`none is there if ${what} is refused behind ${statements} statements, and all are behind the next call`, async () => {
    const before = rows();
    [refusal, left] = [what, statements];
    await fails(code);
    assert.deepEqual(rows(), before);
    const done = await room.instance.timers.scheduleMany(wanted);
    assert.equal(done.filter(({ outcome }) => outcome === "created").length, COUNT - 1);
    await clock.advance(HOUR_MS);
    assert.equal(fired.length, COUNT);
    assert.equal(room.alarmAt, null);
  });
}

it("it is not known what is there if the alarm is refused behind the commit, and named ones may be scheduled again", async () => {
  refusal = "alarm later";
  await fails("unknown_outcome");
  const named = wanted.filter(({ name }) => name !== undefined);
  const done = await room.instance.timers.scheduleMany(named);
  assert.deepEqual(done.map(({ outcome }) => outcome), named.map(() => "replaced"));
  await clock.advance(HOUR_MS);
  assert.equal(fired.length, COUNT);
});
