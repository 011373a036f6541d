// Goal: a deployment that lacks a kind leaves its timers as they are, one that cannot read a payload sets
// it aside once, both delay nobody, and the deployment that knows them again fires each once.
// Method: a real workerd, killed and started with another worker over the same data.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { spread } from "./figures.js";
import { Workerd, until, type ObjectClient } from "./workerd.js";

const MOVED = 300;
const STRICT = 20;
const KNOWN = 1_000;
/** Long enough for all to be scheduled and the first deployment to be gone. */
const LEAD_MS = 6_000;
const SPAN_MS = 3_000;

interface Row {
  readonly key: string;
  readonly value: string;
}

interface Effect {
  readonly kind: string;
  readonly name: string;
  readonly text: string | null;
  readonly at: number;
  readonly due: number;
  readonly attempt: number;
}

interface View {
  readonly name: string;
  readonly state: string;
  readonly attempt: number;
  readonly payload: unknown;
}

interface Dead extends View {
  readonly reason: string;
  readonly deadAt: number;
  readonly lastError: string;
}

interface Page<T> {
  readonly items: T[];
  readonly next?: string;
}

type Wanted = [kind: string, timer: { name: string; dueAt: number; payload?: unknown }];

function timers(kind: string, count: number, due: (index: number) => number): Wanted[] {
  return Array.from({ length: count }, (_, index) => {
    const payload = kind === "known" ? {} : { payload: { text: `${kind} ${index}` } };
    return [kind, { name: `${kind}-${index}`, dueAt: due(index), ...payload }];
  });
}

async function redeploy(workerd: Workerd, entry: string): Promise<void> {
  await workerd.kill();
  workerd.deploy(entry);
  await workerd.start();
}

async function listAll(object: ObjectClient, kind: string): Promise<View[]> {
  const all: View[] = [];
  let after: string | undefined;
  do {
    const page: Page<View> = await object.call<Page<View>>("list", kind, { limit: 100, ...(after === undefined ? {} : { after }) });
    all.push(...page.items);
    after = page.next;
  } while (after !== undefined);
  return all;
}

interface Counts {
  readonly kind: string;
  readonly isKnown: boolean;
  readonly timers: number;
  readonly hasMoreTimers: boolean;
  readonly dead: number;
  readonly hasMoreDead: boolean;
  readonly nextAt?: number;
}

/** The counts without their times, by their kinds' names. */
async function countsByKind(object: ObjectClient): Promise<Record<string, [isKnown: boolean, timers: number, dead: number]>> {
  const counts = await object.call<Counts[]>("counts");
  assert.ok(counts.every(({ hasMoreTimers, hasMoreDead }) => !hasMoreTimers && !hasMoreDead));
  return Object.fromEntries(counts.map(({ kind, isKnown, timers: pending, dead }) => [kind, [isKnown, pending, dead]]));
}

const HOUR_MS = 3_600_000;

/** Waits until nothing is left to be done but the hourly look for kinds without a handler. */
async function hourly(object: ObjectClient): Promise<void> {
  const from = Date.now() + HOUR_MS / 2;
  const at = await until(() => object.call<number | null>("alarm"), (alarm) => alarm !== null && alarm > from);
  assert.ok(at !== null && at <= Date.now() + HOUR_MS, `the alarm is at ${at}`);
}

const effectsOf = async (object: ObjectClient, kind: string): Promise<Effect[]> =>
  (await object.call<Effect[]>("effects")).filter((effect) => effect.kind === kind);

const countsOf = (effects: readonly Effect[]): Map<string, number> => {
  const counts = new Map<string, number>();
  for (const { name } of effects) {
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
};

/** A timer that fires now: what was due before it has had its turn when it has. */
async function marker(object: ObjectClient, name: string): Promise<void> {
  await object.call("schedule", ["known", { name, dueAt: Date.now() }]);
  await until(() => effectsOf(object, "known"), (effects) => effects.some((effect) => effect.name === name));
}

describe("a redeployment", () => {
  it("keeps what it does not know, sets aside what it cannot read, and delays nobody", async (t) => {
    const workerd = await Workerd.start({ entry: "deployed-before.js", classes: ["Deployed"] });
    t.after(() => workerd.stop());
    const object = workerd.object("Deployed", "one");
    const due = Date.now() + LEAD_MS;
    for (const all of [
      timers("strict", STRICT, (index) => due + index),
      timers("moved", MOVED, (index) => due + index),
      timers("known", KNOWN, (index) => due + Math.floor((index * SPAN_MS) / KNOWN)),
    ]) {
      await object.call("schedule", ...all);
    }
    await object.call("corrupt", "strict");
    const movedRows = await object.call<Row[]>("rowsOf", "moved");
    assert.equal(movedRows.length, MOVED);
    assert.deepEqual(await object.call("effects"), []);
    assert.deepEqual(await countsByKind(object), {
      known: [true, KNOWN, 0],
      moved: [true, MOVED, 0],
      strict: [true, STRICT, 0],
    });

    await redeploy(workerd, "deployed-renamed.js");
    const known = await until(() => effectsOf(object, "known"), (effects) => effects.length >= KNOWN);
    assert.equal(countsOf(known).size, KNOWN);
    const lateness = known.map(({ at, due: dueAt }) => at - dueAt);
    assert.ok(Math.min(...lateness) >= 0, "one was early");
    assert.ok(Math.max(...lateness) < 5_000, `one was ${Math.max(...lateness)} ms late`);
    t.diagnostic(`lateness of ${KNOWN} known timers behind ${MOVED} unknown and ${STRICT} undecodable: ${spread(lateness)}`);

    await marker(object, "first marker");
    assert.deepEqual(await object.call("rowsOf", "moved"), movedRows);
    const moved = await listAll(object, "moved");
    assert.equal(new Set(moved.map(({ name }) => name)).size, MOVED);
    assert.deepEqual(moved.filter(({ state, attempt }) => state !== "pending" || attempt !== 0), []);
    assert.deepEqual(await effectsOf(object, "renamed"), []);

    const { items: dead } = await object.call<Page<Dead>>("dead", { kind: "strict" });
    assert.equal(dead.length, STRICT);
    for (const { name, reason, attempt, payload, lastError } of dead) {
      assert.deepEqual([reason, attempt], ["undecodable", 0]);
      const index = Number(name.slice("strict-".length));
      assert.deepEqual(payload ?? null, index === 0 ? null : { text: `strict ${index}` });
      assert.match(lastError, index === 0 ? /does not decode/ : /a newer form was expected/);
    }

    // Both are seen in the counts.
    assert.deepEqual(await countsByKind(object), { moved: [false, MOVED, 0], strict: [true, 0, STRICT] });
    const lost = (await object.call<Counts[]>("counts")).find(({ kind }) => kind === "moved");
    assert.equal(lost?.nextAt, due);

    // Nobody looks at them again and again, but once an hour.
    await hourly(object);
    const alarms = await object.call<number>("alarms");
    await marker(object, "second marker");
    await hourly(object);
    assert.equal(await object.call<number>("alarms"), alarms + 1);
    const { items: still } = await object.call<Page<Dead>>("dead", { kind: "strict" });
    assert.deepEqual(still, dead);
    await redeploy(workerd, "deployed-renamed.js");
    assert.deepEqual(await object.call("rowsOf", "moved"), movedRows);

    await redeploy(workerd, "deployed-restored.js");
    // A request wakes the object before the hour is over.
    const fired = await until(() => effectsOf(object, "moved"), (effects) => effects.length >= MOVED);
    const strict = await until(() => effectsOf(object, "strict"), (effects) => effects.length >= STRICT - 1);
    await marker(object, "third marker");
    await until(() => object.call("alarm"), (alarm) => alarm === null);
    for (const [kind, effects, count] of [["moved", fired, MOVED], ["strict", strict, STRICT - 1]] as const) {
      assert.equal((await effectsOf(object, kind)).length, count);
      assert.equal(countsOf(effects).size, count);
      for (const { name, text, due: dueAt, attempt } of effects) {
        const index = Number(name.slice(kind.length + 1));
        assert.deepEqual([text, dueAt, attempt], [`${kind} ${index}`, due + index, 1]);
      }
    }
    const { items: left } = await object.call<Page<Dead>>("dead", { kind: "strict" });
    assert.deepEqual(left.map(({ name, reason, attempt }) => [name, reason, attempt]), [["strict-0", "undecodable", 0]]);
  });
});
