// Goal: timers of an object that is killed again and again fire, none early, each effect exactly once.
// Method: a real workerd, `kill -9` at moments drawn from a seed, a restart over the same data.
// `DUELINE_SEED` repeats the moments of a run; what the machine does between them is its own.
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { drawSeed, random, spread } from "./figures.js";
import { Workerd, until, type ObjectClient } from "./workerd.js";

const TIMERS = 1_000;
const SPAN_MS = 20_000;
const KILLS = 5;
/** The first timer is due this long behind the scheduling. */
const LEAD_MS = 300;

interface Wanted {
  readonly kind: "inline" | "waiting" | "grouped" | "calling";
  readonly name: string;
  readonly dueAt: number;
}

interface Effect {
  readonly name: string;
  readonly at: number;
  readonly due: number;
}

interface Left {
  readonly timers: number;
  readonly alarm: number | null;
}

const OPTIONS = { entry: "kills.js", classes: ["Killed"] };

/** Starts a workerd for one test, and takes it away behind it. */
async function workerdOf(t: TestContext): Promise<Workerd> {
  const workerd = await Workerd.start(OPTIONS);
  t.after(() => workerd.stop());
  return workerd;
}

function seedOf(t: TestContext): () => number {
  const seed = drawSeed();
  t.diagnostic(`moments of the seed DUELINE_SEED=${seed}`);
  return random(seed);
}

async function schedule(object: ObjectClient, wanted: readonly Wanted[]): Promise<void> {
  for (let from = 0; from < wanted.length; from += 250) {
    await object.call("schedule", wanted.slice(from, from + 250));
  }
}

/**
 * Sleeps to each moment, kills, and starts again. The moments may fall into a start; where it is said how far the clients
 * have come, each kill waits until they have come further since the one before, however slow the machine.
 */
async function killAt(workerd: Workerd, moments: readonly number[], progress?: () => number): Promise<void> {
  let before = 0;
  for (const moment of moments) {
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, moment - Date.now())));
    if (progress !== undefined) {
      before = await until(async () => progress(), (now) => now > before);
    }
    await workerd.kill();
    await workerd.start();
  }
}

function momentsOf(draw: () => number, from: number, span: number): number[] {
  return Array.from({ length: KILLS }, () => from + draw() * span).sort((a, b) => a - b);
}

/** What every history must show: all of these fired, none of them twice, none early, and nothing is left. */
async function checkAll(object: ObjectClient, wanted: readonly Wanted[]): Promise<Effect[]> {
  const dues = new Map(wanted.map(({ name, dueAt }) => [name, dueAt]));
  const left = await until(
    () => object.call<Left>("left"),
    ({ timers, alarm }) => timers === 0 && alarm === null,
    60_000,
  );
  assert.deepEqual(left, { timers: 0, alarm: null });
  const effects = await object.call<Effect[]>("effects");
  const seen = new Set<string>();
  for (const { name, at, due } of effects) {
    assert.ok(!seen.has(name), `a second effect of ${name}`);
    seen.add(name);
    assert.equal(due, dues.get(name), `the due of ${name}`);
    assert.ok(at >= due, `${name} took effect ${due - at} ms early`);
  }
  return effects;
}

describe("an object that is killed", () => {
  it("fires 1,000 named timers over one alarm through five kills, each effect exactly once", async (t) => {
    const draw = seedOf(t);
    const workerd = await workerdOf(t);
    const object = workerd.object("Killed", "thousand");
    const kinds = ["inline", "waiting", "grouped"] as const;
    const begun = Date.now();
    const wanted: Wanted[] = Array.from({ length: TIMERS }, (_, index) => ({
      kind: kinds[index % kinds.length] ?? "inline",
      name: `timer-${index}`,
      dueAt: Math.ceil(begun + LEAD_MS + draw() * (SPAN_MS - LEAD_MS)),
    }));
    await schedule(object, wanted);
    await killAt(workerd, momentsOf(draw, Date.now(), begun + SPAN_MS - Date.now()));
    const effects = await checkAll(object, wanted);
    assert.equal(effects.length, TIMERS);
    const lateness = effects.map(({ at, due }) => at - due);
    t.diagnostic(`lateness of ${TIMERS} timers over ${KILLS} kills: ${spread(lateness)}`);
  });

  it("settles each detached call once, under one occurrence, whenever it was cut", async (t) => {
    const draw = seedOf(t);
    const workerd = await workerdOf(t);
    const object = workerd.object("Killed", "calls");
    const begun = Date.now();
    const wanted: Wanted[] = Array.from({ length: 200 }, (_, index) => ({
      kind: "calling",
      name: `call-${index}`,
      dueAt: Math.ceil(begun + LEAD_MS + draw() * 4_000),
    }));
    await schedule(object, wanted);
    await killAt(workerd, momentsOf(draw, Date.now(), 4_000));
    const effects = await checkAll(object, wanted);
    assert.equal(effects.length, wanted.length);
    const calls = await object.call<{ name: string; occurrence: string }[]>("calls");
    const occurrences = new Map<string, string>();
    for (const { name, occurrence } of calls) {
      assert.equal(occurrences.get(name) ?? occurrence, occurrence, `the occurrence of ${name}`);
      occurrences.set(name, occurrence);
    }
    assert.equal(occurrences.size, wanted.length);
    t.diagnostic(`${wanted.length} calls over ${KILLS} kills were made ${calls.length} times`);
  });

  it("keeps every schedule that it has acknowledged", async (t) => {
    const draw = seedOf(t);
    const workerd = await workerdOf(t);
    const object = workerd.object("Killed", "acknowledged");
    const moments = momentsOf(draw, Date.now(), 5_000);
    const acknowledged: Wanted[] = [];
    const unanswered: Wanted[] = [];
    let isOver = false;
    const client = async (): Promise<void> => {
      for (let index = 0; !isOver; index += 1) {
        const dueAt = Date.now() + Math.floor(draw() * 1_000);
        const wanted: Wanted = { kind: "inline", name: `timer-${index}`, dueAt };
        const answered = await object.call("schedule", [wanted]).then(() => true, () => false);
        (answered ? acknowledged : unanswered).push(wanted);
        if (!answered) {
          await new Promise((resolve) => setTimeout(resolve, 10));
        }
      }
    };
    const clients = client();
    await killAt(workerd, moments, () => acknowledged.length);
    isOver = true;
    await clients;
    const effects = await checkAll(object, [...acknowledged, ...unanswered]);
    const fired = new Set(effects.map(({ name }) => name));
    const lost = acknowledged.filter(({ name }) => !fired.has(name));
    assert.deepEqual(lost, []);
    assert.ok(acknowledged.length >= KILLS);
    t.diagnostic(`${acknowledged.length} schedules acknowledged over ${KILLS} kills, ${unanswered.length} without an answer`);
  });

  it("has all the timers of a call that it has answered, and all or none of any other", async (t) => {
    const draw = seedOf(t);
    const workerd = await workerdOf(t);
    const object = workerd.object("Killed", "whole");
    const size = 200;
    const answered: number[] = [];
    let calls = 0;
    let isOver = false;
    const client = async (): Promise<void> => {
      while (!isOver) {
        const call = calls;
        calls += 1;
        const dueAt = Date.now() + 3_600_000;
        const wanted = Array.from({ length: size }, (_, index): Wanted => ({ kind: "inline", name: `${call} ${index}`, dueAt }));
        if (await object.call("scheduleMany", wanted).then(() => true, () => false)) {
          answered.push(call);
        } else {
          await new Promise((resolve) => setTimeout(resolve, 10));
        }
      }
    };
    const clients = client();
    await killAt(workerd, momentsOf(draw, Date.now(), 3_000), () => answered.length);
    await until(async () => answered.length, (count) => count > KILLS);
    isOver = true;
    await clients;
    // Once more behind an answer, with nothing under way.
    await workerd.kill();
    await workerd.start();
    const found = new Map<number, number>();
    for (const name of await object.call<string[]>("names")) {
      const call = Number(name.split(" ")[0]);
      found.set(call, (found.get(call) ?? 0) + 1);
    }
    assert.deepEqual([...found.values()].filter((count) => count !== size), []);
    assert.deepEqual(answered.filter((call) => !found.has(call)), []);
    assert.ok(answered.length > KILLS);
    t.diagnostic(`${answered.length} of ${calls} calls of ${size} timers answered over ${KILLS + 1} kills, ${found.size} there`);
  });
});
