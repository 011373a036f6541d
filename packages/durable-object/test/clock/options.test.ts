// Goal: an option that is wrong, or that there is not, is an error of the object or the call that it was given to, in
// words that say what was given; no other object of the isolate hears of it. Method: each option in a wrong form, with
// a sound object beside it whose run is under way meanwhile.
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { dead, done, reschedule, retry, TimerObject, Timers, type BuiltIns } from "@dueline/durable-object/kinds";
import { TestClock, TestObject } from "@dueline/durable-object/testing";
import { DurableObject } from "cloudflare:workers";
import { engine } from "../../dist/kinds/engine.js";
import { ErrorsTold } from "./errors-told.js";

type Kinds = { tick: undefined };
type Options = ConstructorParameters<typeof Timers<Kinds>>[1];

const run = (): void => undefined;
let options: unknown;
let ran = 0;

let write: () => void = run;

/** What effects that wrote something return: it is rolled back if that is wrong. */
function wrote<T>(returned: T): T {
  write();
  return returned;
}

class Room extends DurableObject {
  readonly timers = new Timers<Kinds>(this.ctx, options as Options);
  override async alarm(info?: AlarmInvocationInfo): Promise<void> {
    await this.timers.alarm(info);
  }
}

let clock: TestClock;
let errors: ErrorsTold;

async function open(wanted: unknown): Promise<TestObject<Room>> {
  options = wanted;
  return TestObject.open(clock, Room);
}

beforeEach(() => {
  ran = 0;
  errors = new ErrorsTold();
  clock = TestClock.install();
});
afterEach(() => {
  clock.uninstall();
  errors.end();
});

const told = (code: string, words: RegExp) => (thrown: unknown): boolean => {
  assert.equal((thrown as { code?: string }).code, code, String(thrown));
  assert.match((thrown as Error).message, words);
  return true;
};

const OF_A_KIND: Record<string, [options: object, words: RegExp]> = {
  "no group": [{ run, group: 0 }, /`group` of the kind `tick` is a whole number from 1 to 1024, not 0/],
  "a group in words": [{ run, group: "4" }, /not the string "4"/],
  "an endless deadline": [{ run, deadline: Infinity }, /`deadline` of the kind `tick`.* not Infinity/],
  "a negative deadline": [{ run, deadline: -1 }, /not -1/],
  "a deadline that is no number": [{ run, deadline: Number.NaN }, /not NaN/],
  "nothing in a tick": [{ run, perTick: 0 }, /`perTick`/],
  "version 0": [{ run, version: 0 }, /`version`/],
  "half a version": [{ run, version: 1.5 }, /`version`.* not 1.5/],
  "no attempts": [{ run, retry: { attempts: 0 } }, /`attempts` of the kind `tick` \(or Infinity\).* not 0/],
  "a negative delay": [{ run, retry: { initial: -1 } }, /`initial`/],
  "an endless delay": [{ run, retry: { max: Infinity } }, /`max`/],
  "more chance than all": [{ run, retry: { jitter: 101 } }, /`jitter`/],
  "retries by number": [{ run, retry: 5 }, /`retry` of the kind `tick`: an object is wanted, not 5/],
  "no retries": [{ run, retry: null }, /an object is wanted, not null/],
  "a misspelt retry": [{ run, retry: { attemps: 3 } }, /there is no option `attemps`; there are attempts, initial, max, jitter/],
  "a parse in words": [{ run, parse: "x" }, /`parse` of the kind `tick` is a function, not the string "x"/],
  "a settle in words": [{ call: run, settle: "x" }, /`settle` of the kind `tick` is a function/],
  "the concurrency of a call": [{ call: run, concurrency: 0 }, /`concurrency`/],
  "a misspelt option": [{ run, dedline: 5 }, /there is no option `dedline`/],
  "a settle without a call": [{ run, settle: run }, /there is no option `settle`/],
  "a group of calls": [{ call: run, group: 4 }, /there is no option `group`/],
  "an option that throws": [
    {
      run,
      get deadline(): never {
        throw new TypeError("not to be read");
      },
    },
    /not to be read/,
  ],
};

describe("what is wrong with one object's kinds is that object's error", () => {
  for (const [what, [kind, words]] of Object.entries(OF_A_KIND)) {
    it(what, async () => {
      let answer = run;
      const slow = async (): Promise<void> => {
        await new Promise<void>((resolve) => (answer = resolve));
        ran += 1;
      };
      const sound = await open({ handlers: { tick: slow } });
      await sound.instance.timers.schedule("tick", { after: 1 });
      await clock.advance(1);
      const instance = engine.current;
      const code = what.endsWith("throws") ? undefined : "invalid";
      await assert.rejects(open({ handlers: { tick: kind } }), told(code as string, words));
      await assert.rejects(open({ handlers: () => ({ tick: kind }) }), told(code as string, words));
      assert.equal(engine.current, instance);
      assert.deepEqual(errors.told, []);
      answer();
      await clock.advance(1);
      assert.equal(ran, 1);
      assert.deepEqual(await sound.instance.timers.counts(), []);
    });
  }
});

const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`kind ${index}`, run]));
const OF_AN_OBJECT: Record<string, [options: unknown, words: RegExp]> = {
  "nothing": [undefined, /the options of the timers: an object is wanted, not undefined/],
  "a misspelt setting": [{ handlers: {}, fires: 5 }, /there is no option `fires`; there are handlers, ownAlarm, fired,/],
  "a setting in words": [{ handlers: {}, fired: "5" }, /fired is a whole number.* not the string "5"/],
  "handlers in a list": [{ handlers: [run] }, /`handlers`: an object is wanted, not a list of 1/],
  "handlers in a Map": [{ handlers: new Map([["tick", run]]) }, /`handlers`: a plain object is wanted, not an object of the class `Map`/],
  "handlers that are methods": [{ handlers: new (class Many { tick(): void {} })() }, /not an object of the class `Many`/],
  "a log in words": [{ handlers: {}, log: "console" }, /`log` is a function, or `false`, not the string "console"/],
  "a promise of handlers": [{ handlers: async () => ({}) }, /`handlers`: .* must not be async/],
  "a handler that is none": [{ handlers: { tick: 5 } }, /the kind `tick` needs a handler: .* not 5/],
  "a run that is none": [{ handlers: { tick: { run: "x" } } }, /not the string "x"/],
  "a kind without a name": [{ handlers: { "": run } }, /the name of a kind .* not the string ""/],
  "a kind of a long name": [{ handlers: { ["x".repeat(129)]: run } }, /1 to 128 bytes/],
  "a kind that no object has": [{ handlers: { ["__proto__"]: run } }, /the kind `__proto__` needs another name/],
  "225 kinds": [{ handlers: many(225) }, /at most 224 kinds in its life, not 225/],
  "a promise of built-in kinds": [{ handlers: {}, builtIns: async () => ({}) }, /`builtIns`: .* must not be async/],
  "a misspelt built-in kind": [{ handlers: {}, builtIns: { lease: {} } }, /no built-in kind `lease`; there are leases,/],
  "a misspelt option of leases": [{ handlers: {}, builtIns: { leases: { drian: run } } }, /no option `drian`; there are drain, recheck/],
  "a misspelt option of tickets": [{ handlers: {}, builtIns: { tickets: { onclose: run } } }, /no option `onclose`/],
  "an outbox that is none": [{ handlers: {}, builtIns: { outboxes: { mail: 5 } } }, /the outbox `mail`: an object is wanted, not 5/],
  "a recheck that is negative": [{ handlers: {}, builtIns: { leases: { recheck: -1 } } }, /recheck is a span/],
};

describe("what is wrong with the options of the timers", () => {
  for (const [what, [wrong, words]] of Object.entries(OF_AN_OBJECT)) {
    it(what, async () => {
      await assert.rejects(open(wrong), told("invalid", words));
      assert.deepEqual(errors.told, []);
    });
  }

  it("224 kinds are none too many", async () => {
    const room = await open({ handlers: many(224) });
    assert.deepEqual(await room.instance.timers.counts(), []);
  });

  it("a promise of settings, or of built-in kinds", async () => {
    class Late extends TimerObject<Kinds> {
      protected override handlers() {
        return { tick: run };
      }
      protected override settings() {
        return Promise.resolve({ fired: 5 }) as object;
      }
      protected override builtIns(): BuiltIns {
        return {};
      }
    }
    await assert.rejects(TestObject.open(clock, Late), told("invalid", /`settings\(\)`: .* must not be async/));
  });
});

type Verbs = Timers<Kinds>;
const OF_A_CALL: Record<string, [call: (timers: Verbs) => Promise<unknown>, words: RegExp]> = {
  "a misspelt name": [(timers) => timers.schedule("tick", { after: 1, nmae: "a" } as never), /a timer: there is no option `nmae`/],
  "a kind beside the kind": [(timers) => timers.schedule("tick", { kind: "tock", after: 1 } as never), /no option `kind`/],
  "a misspelt name among many": [(timers) => timers.scheduleMany([{ kind: "tick", after: 1, nmae: "a" } as never]), /timer 0 `tick`: .*`nmae`/],
  "no list": [(timers) => timers.scheduleMany({} as never), /timers are a list of 0 to 1000, not an empty object/],
  "a misspelt generation": [(timers) => timers.cancel("tick", "a", { ifmatch: "1" } as never), /no option `ifmatch`; there are ifMatch/],
  "no name": [(timers) => timers.cancel("tick", 5 as never), /a name is a string .* not 5/],
  "a state that is none": [(timers) => timers.list("tick", { states: ["done" as never] }), /a state is pending, retrying, claimed, dead, not the string "done"/],
  "effects that are none": [(timers) => timers.tickets.consume("a", { effects: 5 as never }), /the effects of `tickets` are .* not 5/],
  "a misspelt prefix": [(timers) => timers.list("tick", { prefx: "a" } as never), /no option `prefx`/],
  "a payload to reschedule": [(timers) => timers.reschedule("tick", "a", { after: 1, payload: 1 } as never), /no option `payload`/],
  "a misspelt wait": [(timers) => timers.pause("tick", { Wait: true } as never), /no option `Wait`/],
  "a misspelt limit": [(timers) => timers.deadLetters.list({ limits: 5 } as never), /no option `limits`/],
  "a span in words": [(timers) => timers.list("tick", { limit: "10" as never }), /not the string "10"/],
  "a policy that is none": [(timers) => timers.schedule("tick", { after: 1, name: "a", policy: "keep" as never }), /not the string "keep"/],
  "a misspelt term": [(timers) => timers.leases.grant("a", { owner: "a", tern: 5 } as never), /no option `tern`/],
  "a misspelt effect": [(timers) => timers.tickets.consume("a", { effect: run } as never), /no option `effect`/],
  "a misspelt resource": [(timers) => timers.tickets.open({ resource: "a", ttl: 5, resourcemax: 1 } as never), /no option `resourcemax`/],
  "a limit in the singular": [(timers) => timers.quotas.charge("calls", [1], { limit: [1] } as never), /no option `limit`; there are limits, effects/],
  "a misspelt commit": [(timers) => timers.reservations.commit("a", { serial: "1", effect: run } as never), /no option `effect`/],
  "a misspelt payload": [(timers) => timers.outboxes.append("mail", [{ id: "a", paylaod: 1 } as never]), /no option `paylaod`/],
  "a long id": [(timers) => timers.outboxes.append("mail", [{ id: "x".repeat(129) }]), /at most 128 bytes .* of the `occurrenceId` of a timer with a long name, a hash of it/],
  "a misspelt place": [(timers) => timers.gated.add("a", [{ Place: "p", key: "k" } as never]), /no option `Place`/],
};

describe("what is wrong with the options of a call", () => {
  const builtIns: BuiltIns = {
    leases: {},
    tickets: {},
    reservations: {},
    quotas: { calls: { window: 60_000 } },
    outboxes: { mail: () => undefined },
    gated: { look: ({ keys }) => keys.map(() => false), release: () => undefined },
  };
  for (const [what, [call, words]] of Object.entries(OF_A_CALL)) {
    it(what, async () => {
      const { timers } = (await open({ handlers: { tick: run }, builtIns })).instance;
      await assert.rejects(async () => call(timers), told("invalid", words));
      assert.deepEqual(await timers.counts(), []);
      assert.deepEqual(errors.told, []);
    });
  }

  it("a time in words is told from a number", async () => {
    const { timers } = (await open({ handlers: { tick: run } })).instance;
    const late = { dueAt: "1000" as never };
    await assert.rejects(timers.schedule("tick", late), told("due_out_of_range", /not the string "1000"/));
  });

  it("an alarm of one's own in an object without one", async () => {
    const { timers } = (await open({ handlers: { tick: run } })).instance;
    for (const call of [() => timers.setAlarm(1), () => timers.getAlarm(), () => timers.deleteAlarm()]) {
      await assert.rejects(call(), told("unknown_kind", /an object with an `ownAlarm`/));
    }
  });
});

const OUTCOMES: Record<string, [handler: () => unknown, words: RegExp]> = {
  "an outcome of effects": [() => () => wrote(reschedule({ after: 1 })), /bad_outcome: the effects of `tick` returned an outcome, `reschedule`/],
  "what goes with one, of effects": [() => () => wrote({ schedule: [] }), /bad_outcome: .* returned an object with schedule/],
  "effects of effects": [() => () => wrote(run), /bad_outcome: .* returned the function `run`/],
  "an outcome of effects that go with one": [() => done(() => wrote(done()) as never), /bad_outcome: .* an outcome, `done`/],
  "done uncalled": [() => done, /bad_outcome: .* an outcome, `done`/],
  "retry uncalled": [() => retry, /bad_outcome: `retry` takes a reason/],
  "a number": [() => 5, /^bad_outcome: the handler of `tick` returned 5/],
  "an object": [() => ({ schedule: [] }), /returned an object with schedule/],
  "a due by number": [() => reschedule(5_000 as never), /^bad_outcome: `reschedule` takes \{ dueAt \} or \{ after \}, not 5000/],
  "a misspelt due": [() => reschedule({ at: 5 } as never), /no option `at`; there are dueAt, after, payload/],
  "done with null": [() => done(null as never), /^bad_outcome: what goes with an outcome .* not null/],
  "done with a misspelt effect": [() => done({ effect: run } as never), /no option `effect`/],
  "a follow-up with a misspelt name": [() => done({ schedule: [{ kind: "tick", after: 1, nmae: "a" } as never] }), /no option `nmae`/],
  "a cancel with a generation": [() => done({ cancel: [{ kind: "tick", name: "a", ifMatch: "1" } as never] }), /no option `ifMatch`/],
  "retry without a reason": [() => retry(undefined as never), /^bad_outcome: `retry` takes a reason, a string, not undefined/],
  "retry with an error": [() => retry(new Error("no answer") as never), /^no answer$/],
  "dead without a reason": [() => dead(undefined as never), /^bad_outcome: `dead` takes a reason/],
  "an object thrown": [
    () => {
      throw { code: 1 };
    },
    /^something that is no Error was thrown: \{"code":1\}$/,
  ],
};

describe("what a handler returns is told as it was", () => {
  for (const [what, [handler, words]] of Object.entries(OUTCOMES)) {
    it(what, async () => {
      const room = await open({ handlers: { tick: handler }, log: false });
      const { timers } = room.instance;
      room.sql("CREATE TABLE written (at INTEGER)");
      write = () => void room.sql("INSERT INTO written VALUES (1)");
      await timers.schedule("tick", { name: "a", after: 1 });
      await clock.advance(1);
      assert.deepEqual(room.sql("SELECT * FROM written"), []);
      assert.match((await timers.get("tick", "a"))?.lastError ?? "", words);
    });
  }

  it("what an expression of effects leaves over is nothing", async () => {
    const leftovers = [0, "a", true, null, [], {}, new Map(), Symbol.iterator];
    const room = await open({ handlers: { tick: ({ attempt }: { attempt: number }) => () => wrote(leftovers[attempt - 1 + ran++]) } });
    room.sql("CREATE TABLE written (at INTEGER)");
    write = () => void room.sql("INSERT INTO written VALUES (1)");
    await room.instance.timers.scheduleMany(leftovers.map(() => ({ kind: "tick", after: 1 }) as const));
    await clock.advance(1);
    assert.equal(room.sql("SELECT * FROM written").length, leftovers.length);
  });

  it("effects of a verb that return an outcome are the verb's error", async () => {
    const room = await open({ handlers: {}, builtIns: { leases: {} } });
    const { leases } = room.instance.timers;
    const grant = leases.grant("a", { owner: "ann", term: 5, effects: () => done() as never });
    await assert.rejects(grant, told("bad_outcome", /the effects of `leases` returned an outcome, `done`/));
    assert.equal((await leases.get("a")).outcome, "vacant");
  });
});
