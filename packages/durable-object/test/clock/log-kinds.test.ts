// Goal: whoever runs an object sees which function of theirs a built-in kind could not go on with, once for each time,
// without payloads. Method: each of them throws, hangs, or returns effects that throw, under a virtual clock.
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { outbox, SinkError, Timers, type BuiltIns, type HookEvent, type LogEvent } from "@dueline/durable-object/kinds";
import { TestClock, TestObject } from "@dueline/durable-object/testing";
import { DurableObject } from "cloudflare:workers";

const SECRET = "an account number";
const AWAY = new Error("nobody answers");
/** Everything is due behind this, and its first failure behind it too. */
const DUE_MS = 10_000;

let builtIns: BuiltIns;
let log: ((event: LogEvent) => void) | undefined;
let events: LogEvent[];
let clock: TestClock;

class Shop extends DurableObject {
  readonly timers = new Timers<Record<string, never>>(this.ctx, {
    handlers: {},
    builtIns,
    ...(log === undefined ? {} : { log }),
  });

  override async alarm(info?: AlarmInvocationInfo): Promise<void> {
    await this.timers.alarm(info);
  }
}

beforeEach(() => {
  clock = TestClock.install();
  events = [];
  log = (event) => void events.push(event);
});
afterEach(() => clock.uninstall());

const fails = (): never => {
  throw AWAY;
};
const hangs = (): Promise<never> => new Promise(() => undefined);

async function opened(wanted: BuiltIns): Promise<Timers<Record<string, never>>> {
  builtIns = wanted;
  return (await TestObject.open(clock, Shop)).instance.timers;
}

/** What was told of hooks, and what the alarms knew of that no event told. */
function told(): { hooks: HookEvent[]; failed: number; untold: number } {
  const hooks = events.filter((event): event is HookEvent => event.type === "hook");
  const alarms = events.flatMap((event) => (event.type === "alarm" ? [event] : []));
  assert.ok(!JSON.stringify(events).includes(SECRET), "a payload is told");
  return {
    hooks,
    failed: alarms.reduce((sum, { report }) => sum + report.failed, 0),
    untold: alarms.reduce((sum, { untold }) => sum + untold.failed + untold.dead, 0),
  };
}

interface Case {
  readonly builtIns: BuiltIns;
  readonly begin: (timers: Timers<Record<string, never>>) => Promise<unknown>;
  readonly event: Omit<HookEvent, "type" | "name">;
  readonly name?: string;
  /** How many runs failed with it. */
  readonly failed: number;
}

const thrown = { error: AWAY.message, thrown: AWAY };
const inEffects = { error: `the effects failed: ${AWAY.message}`, thrown: AWAY };
const late = { error: "it took too long: nobody waits for it any more" };

const lease = (timers: Timers<Record<string, never>>) => timers.leases.grant("printer", { owner: "ada", term: DUE_MS });
const ticket = (timers: Timers<Record<string, never>>) =>
  timers.tickets.open({ resource: "seat", session: "s", data: SECRET, ttl: DUE_MS });
const reservation = (timers: Timers<Record<string, never>>) =>
  timers.reservations.reserve("seat", { commitWithin: DUE_MS, skew: 0, detail: SECRET });
const record = (timers: Timers<Record<string, never>>) => timers.gated.add("post", [{ place: "images", key: "a" }]);
const outcome = (timers: Timers<Record<string, never>>) => timers.outboxes.append("mail", [{ id: "1", payload: SECRET }]);
const seen = ({ keys }: { readonly keys: readonly string[] }): boolean[] => keys.map(() => true);

const CASES: Readonly<Record<string, Case>> = {
  "a drain that throws": {
    builtIns: { leases: { drain: fails } },
    begin: lease,
    event: { kind: "$lease_sweep", hook: "drain", ...thrown },
    name: "printer",
    failed: 1,
  },
  "an onClose that throws": {
    builtIns: { tickets: { onClose: fails } },
    begin: ticket,
    event: { kind: "$ticket_expiry", hook: "onClose", ...thrown },
    failed: 1,
  },
  "an onClose that rejects": {
    builtIns: { tickets: { onClose: () => Promise.reject(AWAY) } },
    begin: ticket,
    event: { kind: "$ticket_expiry", hook: "onClose", ...thrown },
    failed: 1,
  },
  "effects of an onClose that throw": {
    builtIns: { tickets: { onClose: () => fails } },
    begin: ticket,
    event: { kind: "$ticket_expiry", hook: "onClose", ...inEffects },
    failed: 1,
  },
  "an onClose that hangs": {
    builtIns: { tickets: { onClose: hangs } },
    begin: ticket,
    event: { kind: "$ticket_expiry", hook: "onClose", ...late },
    failed: 1,
  },
  "an abort that throws": {
    builtIns: { tickets: { abort: fails } },
    begin: ticket,
    event: { kind: "$ticket_expiry", hook: "abort", ...thrown },
    failed: 0,
  },
  "an abort that hangs": {
    builtIns: { tickets: { abort: hangs, abortTimeout: 1_000 } },
    begin: ticket,
    event: { kind: "$ticket_expiry", hook: "abort", ...late },
    failed: 0,
  },
  "an onAbandon that throws": {
    builtIns: { reservations: { onAbandon: fails } },
    begin: reservation,
    event: { kind: "$reservation_reconcile", hook: "onAbandon", ...thrown },
    name: "seat",
    failed: 1,
  },
  "effects of an onAbandon that throw": {
    builtIns: { reservations: { onAbandon: () => fails } },
    begin: reservation,
    event: { kind: "$reservation_reconcile", hook: "onAbandon", ...inEffects },
    name: "seat",
    failed: 1,
  },
  "a look that throws": {
    builtIns: { gated: { look: fails, release: () => undefined } },
    begin: record,
    event: { kind: "$publication_recheck", hook: "look", ...thrown },
    name: "images",
    failed: 1,
  },
  "a release that throws": {
    builtIns: { gated: { look: seen, release: fails } },
    begin: record,
    event: { kind: "$publication_recheck", hook: "release", ...thrown },
    name: "post",
    failed: 1,
  },
  "effects of a release that throw": {
    builtIns: { gated: { look: seen, release: () => fails } },
    begin: record,
    event: { kind: "$publication_recheck", hook: "release", ...inEffects },
    name: "post",
    failed: 1,
  },
  "a sink that throws": {
    builtIns: { outboxes: { mail: { deliver: fails, retry: { initial: DUE_MS } } } },
    begin: outcome,
    event: { kind: "$outcome_delivery", hook: "deliver", sequence: 1, ...thrown },
    name: "mail",
    failed: 0,
  },
  "a sink that hangs": {
    builtIns: { outboxes: { mail: { deliver: hangs, deadline: 1_000, retry: { initial: DUE_MS } } } },
    begin: outcome,
    event: { kind: "$outcome_delivery", hook: "deliver", sequence: 1, ...late },
    name: "mail",
    failed: 0,
  },
};

describe("is told once, and leaves nothing untold:", () => {
  for (const [what, { builtIns: wanted, begin, event, name, failed }] of Object.entries(CASES)) {
    it(what, async () => {
      const timers = await opened(wanted);
      await begin(timers);
      // Up to the deadlines of what hangs, and not to a second run.
      await clock.advance(event.hook === "look" || event.hook === "release" || event.hook === "deliver" ? 3_000 : DUE_MS);
      await clock.advance("thrown" in event ? 0 : 5_000);
      const { hooks, ...rest } = told();
      assert.deepEqual(hooks.map(({ name: _, ...more }) => more), [{ type: "hook", ...event }]);
      assert.ok(name === undefined || hooks[0]?.name === name);
      assert.deepEqual(rest, { failed, untold: 0 });
    });
  }
});

it("what fails in a verb is the verb's error, and not told", async () => {
  const timers = await opened({ tickets: { onClose: fails } });
  const held = await ticket(timers);
  assert.ok(held.outcome !== "refused");
  await assert.rejects(timers.tickets.consume(held.ticket.id), AWAY);
  assert.deepEqual(events, []);
});

it("a payload that does not decode is told of without its text", async () => {
  const mail = outbox<string>({
    deliver: () => undefined,
    parse: () => {
      throw new SinkError("refused", "no order");
    },
  });
  builtIns = { outboxes: { mail } };
  const object = await TestObject.open(clock, Shop);
  const { outboxes } = object.instance.timers;
  await outboxes.append("mail", [{ id: "1", payload: SECRET }, { id: "2", payload: SECRET }]);
  const stored = Buffer.from(JSON.stringify(SECRET)).toString("hex");
  // Without the quote at its end it is no JSON, and JavaScript's error would show it.
  object.sql(
    "UPDATE dueline_kv SET value = unhex(substr(hex(value), 1, length(hex(value)) - 2) || '7b') WHERE hex(key) LIKE '620008%02' AND lower(hex(value)) LIKE ?",
    `%${stored}`,
  );
  await clock.advance(1_000);
  const errors = told().hooks.map(({ sequence, error }) => [sequence, error]);
  assert.deepEqual(errors, [[1, "no order"], [2, "corrupt: the payload does not decode"]]);
});

it("the console has a line for each", async (t) => {
  const lines: string[] = [];
  t.mock.method(console, "warn", (line: string) => lines.push(line));
  t.mock.method(console, "error", (line: string) => lines.push(line));
  log = undefined;
  const timers = await opened({ leases: { drain: fails }, outboxes: { mail: fails } });
  await lease(timers);
  await outcome(timers);
  await clock.advance(500);
  await timers.outboxes.setAside("mail", 1, "enough");
  await clock.advance(DUE_MS);
  assert.deepEqual(lines, [
    'dueline: `deliver` of $outcome_delivery for "mail", outcome 1, failed: nobody answers',
    'dueline: `drain` of $lease_sweep for "printer" failed: nobody answers',
  ]);
});

it("effects that fail in a group are told once for each timer", async () => {
  const timers = await opened({ tickets: { onClose: ({ resource }) => (resource === "bad" ? fails : () => undefined) } });
  for (const resource of ["good", "bad", "fine"]) {
    await timers.tickets.open({ resource, ttl: DUE_MS });
  }
  await clock.advance(DUE_MS + 100);
  const { hooks, ...rest } = told();
  assert.deepEqual(hooks.map(({ hook, error }) => [hook, error]), [["onClose", inEffects.error]]);
  assert.deepEqual(rest, { failed: 1, untold: 0 });
});

it("a detail that does not decode is told of without its text", async () => {
  builtIns = { reservations: { onAbandon: () => undefined } };
  const object = await TestObject.open(clock, Shop);
  await reservation(object.instance.timers);
  const stored = Buffer.from(JSON.stringify(SECRET)).toString("hex");
  object.sql(
    "UPDATE dueline_kv SET value = unhex(substr(hex(value), 1, length(hex(value)) - 2) || '7b') WHERE lower(hex(value)) LIKE ?",
    `%${stored}`,
  );
  await clock.advance(DUE_MS);
  const { hooks, ...rest } = told();
  assert.deepEqual(hooks.map(({ error }) => error), ["corrupt: the detail of the reservation `seat` does not decode"]);
  assert.deepEqual(rest, { failed: 1, untold: 0 });
});
