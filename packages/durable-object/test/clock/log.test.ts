// Goal: whoever runs an object sees what fails in it: a line of the console each, or an event for a function of
// one's own, once for each run, without payloads, and without harm to timers whatever that function does.
// Method: a virtual clock, a kind for each way to fail, and a console that is listened to.
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { dead, detached, done, retry, Timers, type Handlers, type LogEvent, type Logger } from "@dueline/durable-object";
import { TestClock, TestObject } from "@dueline/durable-object/testing";
import { DurableObject } from "cloudflare:workers";

type Kinds = {
  work: { secret: string };
  fail: { secret: string };
  late: undefined;
  call: undefined;
  settle: undefined;
  again: undefined;
  effects: undefined;
  promise: undefined;
  give: undefined;
  giveAndFail: undefined;
  giveWith: undefined;
  parsed: { secret: string };
  nonsense: undefined;
  group: { fails: boolean };
};

const SECRET = "hunter2";
const STRICT = { attempts: 2, initial: 1_000, max: 1_000, jitter: 0 };
/** What the objects of a test are made with. */
let log: Logger | false | undefined;
let events: LogEvent[] = [];
let lines: { level: "warn" | "error"; text: string }[] = [];
let failure = "it broke";

class Logged extends DurableObject {
  readonly timers = new Timers<Kinds>(this.ctx, { handlers: () => this.#handlers(), ...(log === undefined ? {} : { log }) });

  override async alarm(info?: AlarmInvocationInfo): Promise<void> {
    await this.timers.alarm(info);
  }

  #handlers(): Handlers<Kinds> {
    const fail = (): never => {
      throw new Error(failure);
    };
    const never = (): Promise<never> => new Promise(() => undefined);
    return {
      work: () => undefined,
      fail: { run: fail, retry: STRICT },
      late: { run: () => new Promise((resolve) => setTimeout(resolve, 60_000)), deadline: 2_000, retry: STRICT },
      call: detached({ call: never, deadline: 3_000, retry: STRICT }),
      settle: detached({ call: () => 5, settle: async () => fail(), retry: STRICT }),
      again: { run: () => retry("not yet", 500), retry: STRICT },
      effects: { run: () => fail, retry: STRICT },
      promise: { run: () => () => Promise.resolve() as unknown as void, retry: STRICT },
      give: () => dead("nobody wants it"),
      giveAndFail: { run: () => dead("nobody wants it", fail), retry: STRICT },
      giveWith: () => dead("nobody wants it", () => undefined),
      parsed: {
        run: () => undefined,
        parse: () => {
          throw new Error("of another version");
        },
      },
      nonsense: { run: () => 5 as never, retry: STRICT },
      group: { run: (timer) => (timer.payload.fails ? done(fail) : () => undefined), group: 8, retry: STRICT },
    };
  }
}

let clock: TestClock;
let object: TestObject<Logged>;
const real = { warn: console.warn, error: console.error };

async function begin(given: Logger | false | undefined): Promise<void> {
  log = given;
  events = [];
  lines = [];
  failure = "it broke";
  clock = TestClock.install();
  object = await TestObject.open(clock, Logged, { name: "logged" });
}

/** Schedules one timer, and lets it come to its end. */
async function run(kind: keyof Kinds, payload?: unknown): Promise<void> {
  await object.instance.timers.schedule(kind, { name: "one", after: 1_000, payload } as never);
  await clock.advance(30_000);
}

const ofTimers = (): unknown[] =>
  events.flatMap((event) => (event.type === "failed" || event.type === "dead" ? [[event.type, event.attempt, event.error]] : []));

beforeEach(() => {
  for (const level of ["warn", "error"] as const) {
    console[level] = (...words: unknown[]) => void lines.push({ level, text: words.map(String).join(" ") });
  }
});
afterEach(() => {
  Object.assign(console, real);
  clock.uninstall();
});

describe("a function that takes the events", () => {
  beforeEach(() => begin((event) => void events.push(event)));
  afterEach(() => assert.deepEqual(lines, []));

  const deadline = "the run passed its deadline of";
  const failures: [keyof Kinds, string, unknown?][] = [
    ["fail", "it broke", { secret: SECRET }],
    ["late", `${deadline} 2000 ms`],
    ["call", `${deadline} 3000 ms`],
    ["settle", "it broke"],
    ["again", "not yet"],
    ["effects", "the effects failed: it broke"],
    ["giveAndFail", "the effects failed: it broke"],
    ["promise", "effects_async: the effects of `promise` returned a promise; await before you return them"],
    ["nonsense", "bad_outcome: the handler of `nonsense` returned 5, which is neither nothing, effects, nor an outcome made by done, reschedule, retry or dead"],
    ["group", "the effects failed: it broke", { fails: true }],
  ];
  for (const [kind, error, payload] of failures) {
    it(`is told of each failed run of \`${kind}\` once, and of the last as a death, in the words of the stored error`, async () => {
      await run(kind, payload);
      assert.deepEqual(ofTimers(), [["failed", 1, error], ["dead", 2, error]]);
      const letters = (await object.instance.timers.deadLetters.list()).items;
      assert.deepEqual(letters.map(({ reason, attempt, lastError }) => [reason, attempt, lastError]), [["exhausted", 2, error]]);
      const untold = events.flatMap((event) => (event.type === "alarm" ? [event.untold] : []));
      assert.ok(untold.length >= 2 && untold.every((of) => of.failed === 0 && of.dead === 0), JSON.stringify(untold));
    });
  }

  it("is told who failed, what was thrown, and never a payload", async () => {
    const due = clock.now + 1_000;
    await run("fail", { secret: SECRET });
    const [first] = events;
    assert.ok(first?.type === "failed");
    assert.deepEqual([first.kind, first.name, first.dueAt], ["fail", "one", due]);
    assert.ok(first.thrown instanceof Error && first.occurrenceId.includes("/one/"));
    assert.ok(!JSON.stringify(events).includes(SECRET));
  });

  for (const kind of ["give", "giveWith"] as const) {
    it(`is told of a timer that its handler gives up, by \`${kind}\``, async () => {
      await run(kind);
      assert.deepEqual(ofTimers(), [["dead", 1, "nobody wants it"]]);
      assert.ok(events.some((event) => event.type === "dead" && event.reason === "handler" && !("thrown" in event)));
    });
  }

  it("is told of a payload that does not decode, without its text", async () => {
    await run("parsed", { secret: SECRET });
    assert.deepEqual(ofTimers(), [["dead", 1, "the payload does not decode: of another version"]]);
    await object.instance.timers.schedule("work", { name: "two", after: 1_000, payload: { secret: SECRET } });
    damagePayload();
    await clock.advance(1_000);
    assert.deepEqual(ofTimers().slice(1), [["dead", 1, "the payload does not decode"]]);
    const deaths = events.flatMap((event) => (event.type === "dead" ? [[event.reason, "thrown" in event]] : []));
    assert.deepEqual(deaths, [["undecodable", true], ["undecodable", false]]);
  });

  it("is told of one failure of a group, and not of those that fired beside it", async () => {
    for (const name of ["a", "b", "c", "d"]) {
      await object.instance.timers.schedule("group", { name, after: 1_000, payload: { fails: name === "b" } });
    }
    await clock.advance(1_500);
    assert.deepEqual(ofTimers(), [["failed", 1, "the effects failed: it broke"]]);
    assert.ok(events.some((event) => event.type === "failed" && event.name === "b"));
  });

  it("is told of every alarm, what it did", async () => {
    await run("work", { secret: SECRET });
    const reports = events.map((event) => (event.type === "alarm" ? event.report.fired : event.type));
    assert.deepEqual(reports, [1]);
  });

  it("is told of rows that were set aside", async () => {
    await object.instance.timers.schedule("work", { after: 1_000, payload: { secret: SECRET } });
    damageRow();
    await clock.advance(5_000);
    const quarantined = events.map((event) => (event.type === "alarm" ? event.report.quarantined : 0));
    assert.equal(quarantined.reduce((sum, rows) => sum + rows, 0), 1);
  });
});

describe("without a word of it", () => {
  it("the console has a line for each failure, on one line, and none for what goes well", async () => {
    await begin(undefined);
    await run("work", { secret: SECRET });
    assert.deepEqual(lines, []);
    failure = "it broke\n  in two";
    await run("fail", { secret: SECRET });
    await run("give");
    assert.deepEqual(lines, [
      { level: "warn", text: 'dueline: fail "one" failed, attempt 1: it broke in two' },
      { level: "error", text: 'dueline: fail "one" was given up (exhausted), attempt 2: it broke in two' },
      { level: "error", text: 'dueline: give "one" was given up (handler), attempt 1: nobody wants it' },
    ]);
  });

  it("the console is told of rows that were set aside", async () => {
    await begin(undefined);
    await object.instance.timers.schedule("work", { after: 1_000, payload: { secret: SECRET } });
    damageRow();
    await clock.advance(5_000);
    assert.deepEqual(lines, [{ level: "error", text: "dueline: stored rows that do not decode were set aside, 1 of them" }]);
  });

  it("with `false` nobody is told", async () => {
    await begin(false);
    await run("fail", { secret: SECRET });
    await run("give");
    assert.deepEqual(lines, []);
    assert.equal((await object.instance.timers.deadLetters.list()).items.length, 2);
  });
});

describe("a function that fails", () => {
  const broken: [string, Logger][] = [
    ["throws", () => { throw new Error("no log"); }],
    ["rejects", () => Promise.reject(new Error("no log"))],
    ["throws what has no text", () => { throw Object.create(null); }],
    ["returns what throws when it is looked at", () => ({ get then() { throw new Error("no log"); } }) as never],
    ["calls a verb that fails", async () => void (await object.instance.timers.get("nobody" as never, "one"))],
  ];
  for (const [what, logger] of broken) {
    it(`changes nothing of the timers if it ${what}`, async () => {
      await begin(logger);
      await run("fail", { secret: SECRET });
      await run("effects");
      await run("work", { secret: SECRET });
      const letters = (await object.instance.timers.deadLetters.list()).items;
      assert.deepEqual(letters.map(({ kind, attempt }) => [kind, attempt]), [["fail", 2], ["effects", 2]]);
      assert.equal(await object.instance.timers.get("work", "one"), undefined);
      assert.ok(object.alarms.every(({ error }) => error === undefined));
      assert.ok(lines.every(({ level, text }) => level === "warn" && text.startsWith("dueline: `log` failed")), JSON.stringify(lines));
    });
  }

  it("is refused if it is no function", async () => {
    await assert.rejects(begin("console" as never), /invalid: `log` is a function, or `false`/);
  });
});

describe("a storage that refuses", () => {
  let isRefusing = false;

  /** As `ctx`, but its storage commits nothing while it refuses. */
  function refusing(ctx: DurableObjectState): DurableObjectState {
    const refuse = (): never => {
      throw new Error("no storage today");
    };
    const storage = new Proxy(ctx.storage, {
      get: (of, key) => (key === "transactionSync" && isRefusing ? refuse : (Reflect.get(of, key) as unknown)),
    });
    return new Proxy(ctx, { get: (of, key) => (key === "storage" ? storage : (Reflect.get(of, key) as unknown)) });
  }

  class Refused extends DurableObject {
    readonly timers = new Timers<{ work: undefined }>(refusing(this.ctx), { handlers: { work: () => undefined } });
    override async alarm(info?: AlarmInvocationInfo): Promise<void> {
      await this.timers.alarm(info);
    }
  }

  it("has a line of the console, and the timer fires once it refuses no more", async () => {
    await begin(false);
    const refused = await TestObject.open(clock, Refused, { name: "refused" });
    await refused.instance.timers.schedule("work", { name: "one", after: 1_000 });
    isRefusing = true;
    await clock.advance(1_500);
    assert.deepEqual(lines, [
      { level: "error", text: "dueline: the storage refused the timers; they are held back and tried again" },
    ]);
    isRefusing = false;
    await clock.advance(5_000);
    assert.equal(await refused.instance.timers.get("work", "one"), undefined);
    assert.equal(lines.length, 1);
  });
});

/** Replaces the last byte of each stored timer, the end of its payload, so that it is no JSON. */
function damagePayload(): void {
  object.sql(
    "UPDATE dueline_kv SET value = CAST(substr(value, 1, length(value) - 1) || x'20' AS BLOB) WHERE key >= x'7700' AND key < x'7701'",
  );
}

/** A row in the lane of the only timer, in front of it, whose key is cut. */
function damageRow(): void {
  object.sql(
    "INSERT INTO dueline_kv SELECT part, CAST(substr(key, 1, 3) || x'0000' AS BLOB), value FROM dueline_kv WHERE key >= x'7700' AND key < x'7701'",
  );
}
