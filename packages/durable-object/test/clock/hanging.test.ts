// Goal: a function of the application that never answers, or late, holds up nothing but what it was asked about, and
// that for no longer than its deadline. Method: each hook hangs forty times at once beside timers of another kind; verbs
// whose hook hangs, answers late or never; what is kept is looked for when it should be gone.
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import {
  detached,
  DuelineError,
  TimerObject,
  type BuiltIns,
  type Effects,
  type Handlers,
  type LogEvent,
  type Settings,
  type TicketOptions,
} from "@dueline/durable-object/kinds";
import { TestClock, TestObject } from "@dueline/durable-object/testing";
import { coded, hold, openVenue, written, type Venue } from "./venue.js";

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
/** How long an alarm waits for an inline handler, a hook of an inline kind, or the settling of a call. */
const DEADLINE_MS = 5_000;
/** How long calls and hooks of kinds that make them may take. */
const CALL_DEADLINE_MS = 30_000;
/** How often an alarm that has stayed long enough for its calls looks what else is due. */
const LOOK_MS = 1_000;
/** A timer of the platform's and the break between two ticks. */
const SLACK_MS = 20;
const MANY = 40;

const hangs = (): Promise<never> => new Promise(() => undefined);
const seen = ({ keys }: { readonly keys: readonly string[] }): boolean[] => keys.map(() => true);

type Kinds = { quick: undefined; call: undefined; hanging: undefined; calling: undefined };

let clock: TestClock;
let builtIns: BuiltIns = {};
let late: { readonly quick: number[]; readonly call: number[] };

class Hall extends TimerObject<Kinds> {
  protected override settings(): Settings {
    return { log: false };
  }
  protected override handlers(): Handlers<Kinds> {
    return {
      quick: ({ dueAt }) => void late.quick.push(clock.now - dueAt),
      call: detached({ call: () => undefined, settle: ({ dueAt }) => void late.call.push(clock.now - dueAt) }),
      hanging: hangs,
      calling: detached({ call: hangs, settle: () => undefined }),
    };
  }
  protected override builtIns(): BuiltIns {
    return builtIns;
  }
  get open() {
    return this.timers;
  }
}

beforeEach(() => {
  // Nothing here waits for real time.
  clock = TestClock.install({ patience: 1 });
  late = { quick: [], call: [] };
});
afterEach(() => clock.uninstall());

type Open = Hall["open"];

interface Case {
  readonly builtIns?: BuiltIns;
  /** Makes one that hangs from ten seconds on. */
  readonly begin: (timers: Open, name: string) => Promise<unknown>;
  /** How late it may make timers that call nobody, and those that do. */
  readonly late: readonly [quick: number, call: number];
}

const SPAN_MS = 10 * SECOND_MS;
const ticket = (timers: Open, name: string) => timers.tickets.open({ resource: name, session: name, ttl: SPAN_MS });
const reservation = (timers: Open, name: string) => timers.reservations.reserve(name, { commitWithin: SPAN_MS, skew: 0 });
const record = (timers: Open, name: string) =>
  timers.gated.add(name, [{ place: "images", key: name }]).then(() => undefined);

/** Each tick waits for one of them. */
const INLINE: Case["late"] = [DEADLINE_MS, DEADLINE_MS];
/** They are waited for beside everything else, until the alarm has stayed long enough and begins no more calls. */
const CALLS: Case["late"] = [LOOK_MS, CALL_DEADLINE_MS];

const CASES: Readonly<Record<string, Case>> = {
  "an onAbandon": { builtIns: { reservations: { onAbandon: hangs } }, begin: reservation, late: INLINE },
  "an onClose in an alarm": { builtIns: { tickets: { onClose: hangs } }, begin: ticket, late: INLINE },
  "an inline handler": { begin: (timers) => timers.schedule("hanging", { after: SPAN_MS }), late: INLINE },
  "an onClose behind an abort": {
    builtIns: { tickets: { abort: () => undefined, onClose: hangs } },
    begin: ticket,
    late: CALLS,
  },
  "an abort": { builtIns: { tickets: { abort: hangs } }, begin: ticket, late: CALLS },
  "a drain": {
    builtIns: { leases: { drain: hangs } },
    begin: (timers, name) => timers.leases.grant(name, { owner: "ada", term: SPAN_MS }),
    late: CALLS,
  },
  "a look": { builtIns: { gated: { look: hangs, release: () => undefined } }, begin: record, late: CALLS },
  "a release": { builtIns: { gated: { look: seen, release: hangs } }, begin: record, late: CALLS },
  "a sink": {
    builtIns: { outboxes: { mail: hangs } },
    begin: (timers, id) => timers.outboxes.append("mail", [{ id }]),
    late: CALLS,
  },
  "a call": { begin: (timers) => timers.schedule("calling", { after: SPAN_MS }), late: CALLS },
  "calls of two kinds, which have all the slots,": {
    builtIns: { leases: { drain: hangs } },
    begin: async (timers, name) => {
      await timers.schedule("calling", { after: SPAN_MS });
      await timers.leases.grant(name, { owner: "ada", term: SPAN_MS });
    },
    late: CALLS,
  },
};

describe("forty that hang at once delay timers of other kinds by a deadline at most:", () => {
  for (const [what, { builtIns: wanted = {}, begin, late: [quick, call] }] of Object.entries(CASES)) {
    it(what, async () => {
      builtIns = wanted;
      const hall = await TestObject.open(clock, Hall);
      const { open } = hall.instance;
      for (let number = 0; number < MANY; number += 1) {
        await begin(open, `name-${number}`);
      }
      for (let second = 10; second < 60; second += 0.5) {
        await open.schedule("quick", { after: second * SECOND_MS });
      }
      for (let second = 10; second < 60; second += 5) {
        await open.schedule("call", { after: second * SECOND_MS });
      }
      await clock.advance(3 * MINUTE_MS);
      assert.deepEqual([late.quick.length, late.call.length], [100, 10]);
      const latest = [Math.max(...late.quick), Math.max(...late.call)] as const;
      assert.ok(latest[0] <= quick + SLACK_MS && latest[1] <= call + SLACK_MS, `${latest.join(" and ")} ms late`);
    });
  }
});

describe("an onClose that a verb asks", () => {
  const verbs = ["consume", "release"] as const;
  const options: [string, TicketOptions, number][] = [
    ["thirty seconds", {}, 30 * SECOND_MS],
    ["as many as it says", { deadline: 250 }, 250],
    ["longer than an alarm would", { deadline: 10 * MINUTE_MS }, 10 * MINUTE_MS],
  ];
  let venue: TestObject<Venue>;

  for (const verb of verbs) {
    for (const [what, given, deadline] of options) {
      it(`and that hangs lets ${verb} wait for ${what}, and nothing has changed`, async () => {
        venue = await openVenue(clock, { ...given, onClose: hangs });
        const { tickets } = venue.instance;
        const ticket = await hold(venue, "A1", 60 * MINUTE_MS);
        const errors: unknown[] = [];
        const ended = tickets[verb](ticket.id, { effects: venue.instance.writing("an end") }).catch((thrown: unknown) => {
          errors.push(thrown);
        });
        await clock.advance(deadline - 1);
        assert.equal(errors.length, 0);
        await clock.advance(1);
        await ended;
        const [error] = errors;
        assert.ok(error instanceof DuelineError && error.code === "deadline");
        assert.equal(
          error.message,
          `deadline: \`onClose\` of \`${ticket.id}\` ($ticket_expiry) did not answer within ${deadline} ms; nothing has changed`,
        );
        assert.deepEqual(await tickets.get(ticket.id), ticket);
        assert.deepEqual(written(venue), []);
      });
    }
  }

  it("holds up no other verb of its ticket meanwhile", async () => {
    let isHanging = true;
    venue = await openVenue(clock, { onClose: () => (isHanging ? hangs() : venue.instance.writing("closed")) });
    const { tickets } = venue.instance;
    const { id } = await hold(venue, "A1", MINUTE_MS);
    const hung = assert.rejects(tickets.consume(id), coded("deadline"));
    await clock.advance(SECOND_MS);
    assert.equal((await tickets.extend(id, 2 * MINUTE_MS)).outcome, "done");
    assert.equal(await tickets.openCount({ resource: "A1" }), 1);
    isHanging = false;
    assert.equal((await tickets.release(id)).outcome, "done");
    await clock.advance(MINUTE_MS);
    await hung;
    assert.deepEqual(written(venue), ["closed"]);
  });

  it("may answer up to its deadline; what comes behind it is dropped, an error too", async () => {
    const answers: [number, (() => void) | Error][] = [
      [999, () => venue.instance.writing("in time")()],
      [1_001, () => venue.instance.writing("late")()],
      [1_001, new RangeError("late")],
    ];
    venue = await openVenue(clock, {
      deadline: 1_000,
      onClose: (ticket) => {
        const [after, answer] = answers[Number(ticket.data)] ?? [0, new Error("unknown")];
        return new Promise((resolve, reject) => {
          setTimeout(() => (answer instanceof Error ? reject(answer) : resolve(answer)), after);
        });
      },
    });
    const { tickets } = venue.instance;
    const held = [];
    for (const number of answers.keys()) {
      held.push(await hold(venue, "A1", MINUTE_MS, { data: number }));
    }
    const ends = held.map(({ id }) => tickets.consume(id).then(({ outcome }) => outcome, ({ code }: { code: string }) => code));
    await clock.advance(5_000);
    assert.deepEqual(await Promise.all(ends), ["done", "deadline", "deadline"]);
    assert.deepEqual(written(venue), ["in time"]);
    assert.equal(await tickets.openCount({ resource: "A1" }), 2);
  });

  it("has its deadline in an alarm too, where a log is told and the ticket stays", async () => {
    const told: string[] = [];
    const log = (event: LogEvent): void => void (event.type === "hook" && told.push(event.error));
    venue = await openVenue(clock, { deadline: 250, onClose: hangs }, log);
    const { id } = await hold(venue, "A1", MINUTE_MS);
    await clock.advance(MINUTE_MS + 249);
    assert.deepEqual(told, []);
    await clock.advance(1);
    const error = `deadline: \`onClose\` of \`${id}\` ($ticket_expiry) did not answer within 250 ms; nothing has changed`;
    assert.deepEqual(told, [error]);
    assert.equal((await venue.instance.tickets.get(id))?.id, id);
  });

  it("has a deadline of at least a millisecond", async () => {
    for (const deadline of [0, -1, Number.NaN, "5" as never]) {
      const isRefused = (error: unknown): boolean => coded("invalid")(error) || coded("due_out_of_range")(error);
      await assert.rejects(openVenue(clock, { deadline }), isRefused);
    }
  });
});

describe("effects that come too late are forgotten at once,", () => {
  setFlagsFromString("--expose_gc");
  const collect = runInNewContext("gc") as () => void;
  let made: WeakRef<() => void>[] = [];
  /** Effects, in so many milliseconds. */
  const lateEffects = (ms: number): Promise<Effects> =>
    new Promise((resolve) => {
      setTimeout(() => {
        const effects = (): void => assert.fail("these are done");
        made.push(new WeakRef(effects));
        resolve(effects);
      }, ms);
    });
  const left = async (): Promise<number[]> => {
    await clock.settle();
    collect();
    return [made.length, made.filter((effects) => effects.deref() !== undefined).length];
  };

  beforeEach(() => {
    made = [];
  });

  it("those that a verb asked for", async () => {
    const venue = await openVenue(clock, { deadline: 1_000, onClose: () => lateEffects(2_000) });
    const { id } = await hold(venue, "A1", MINUTE_MS);
    const consumed = assert.rejects(venue.instance.tickets.consume(id), coded("deadline"));
    await clock.advance(3_000);
    await consumed;
    assert.deepEqual(await left(), [1, 0]);
  });

  it("those that an alarm asked for", async () => {
    builtIns = { reservations: { onAbandon: () => lateEffects(5_500) } };
    const hall = await TestObject.open(clock, Hall);
    await hall.instance.open.reservations.reserve("A1", { commitWithin: SPAN_MS, skew: 0 });
    await clock.advance(SPAN_MS + 5_600);
    assert.deepEqual(await left(), [1, 0]);
  });

  it("those of a handler and of a settling", async () => {
    class Room extends TimerObject<{ run: undefined; call: undefined }> {
      protected override settings(): Settings {
        return { log: false };
      }
      protected override handlers() {
        return {
          run: () => lateEffects(5_500),
          call: detached({ call: () => 1, settle: () => lateEffects(5_500) as never }),
        } as Handlers<{ run: undefined; call: undefined }>;
      }
      protected override builtIns(): BuiltIns {
        return {};
      }
      plan(kind: "run" | "call") {
        return this.timers.schedule(kind, { after: SECOND_MS });
      }
    }
    const room = await TestObject.open(clock, Room);
    await room.instance.plan("run");
    await clock.advance(SECOND_MS + 5_600);
    assert.deepEqual(await left(), [1, 0]);
    await room.instance.plan("call");
    await clock.advance(SECOND_MS + 5_600);
    assert.equal((await left())[1], 0);
    assert.ok(made.length > 1);
  });
});
