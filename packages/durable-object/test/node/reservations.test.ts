// Goal: a reservation ends once, in time, with its effects, though its object is killed again and again. Method: a
// real workerd, `kill -9` at moments drawn from a seed, clients that ask again when they have no answer.
import assert from "node:assert/strict";
import { it } from "node:test";
import type { Reservation, Reserving, Settlement } from "@dueline/durable-object/kinds";
import { drawSeed, random } from "./figures.js";
import { Answered, Workerd, until, type ObjectClient } from "./workerd.js";

const SEATS = 120;
const KILLS = 3;
const SPAN_MS = 2_000;
/** How long what was cut may take to come back, and more. */
const CLAIM_MS = 40_000;

interface End {
  readonly id: string;
  readonly way: string;
  readonly at: number;
}

/** Asks until there is an answer. */
async function ask<T>(object: ObjectClient, op: string, ...args: unknown[]): Promise<T> {
  for (;;) {
    try {
      return await object.call<T>(op, ...args);
    } catch (thrown) {
      assert.ok(!(thrown instanceof Answered), String(thrown));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

/** Reserves a seat, and settles it if that is wanted. What it says of the commit. */
async function visit(object: ObjectClient, id: string, within: number, commitAfter?: number): Promise<Settlement | undefined> {
  const { reservation } = await ask<Reserving>(object, "reserve", id, within);
  if (commitAfter === undefined) {
    return undefined;
  }
  await new Promise((resolve) => setTimeout(resolve, commitAfter));
  return ask<Settlement>(object, "commit", id, reservation.serial);
}

it("reservations end once, in time, over kills of their object", async (t) => {
  const seed = drawSeed();
  t.diagnostic(`moments of the seed DUELINE_SEED=${seed}`);
  const draw = random(seed);
  const workerd = await Workerd.start({ entry: "reservations.js", classes: ["Hall"] });
  t.after(() => workerd.stop());
  const object = workerd.object("Hall", "hall");
  const ids = Array.from({ length: SEATS }, (_, index) => `seat-${index}`);
  const visits = ids.map((id, index) => {
    const within = Math.ceil(500 + draw() * SPAN_MS);
    // Every third stays away; of the others some are late.
    return visit(object, id, within, index % 3 === 0 ? undefined : draw() * within * 1.2);
  });
  for (let kill = 0; kill < KILLS; kill += 1) {
    await new Promise((resolve) => setTimeout(resolve, 200 + draw() * (SPAN_MS / KILLS)));
    await workerd.kill();
    await workerd.start();
  }
  const said = await Promise.all(visits);
  const all = () => ask<Reservation[]>(object, "all", ids);
  // A run that was cut twice has a claim of 15 s to come back from.
  const reservations = await until(all, (found) => found.every(({ state }) => state !== "pending"), CLAIM_MS);
  const ends = new Map<string, End>();
  for (const end of await ask<End[]>(object, "ends")) {
    assert.ok(!ends.has(end.id), `a second end of ${end.id}`);
    ends.set(end.id, end);
  }
  for (const [index, reservation] of reservations.entries()) {
    const { id, state, endedAt, commitBy, deadline } = reservation;
    const end = ends.get(id);
    assert.equal(end?.way, state, `the effects of ${id}`);
    assert.ok(endedAt !== undefined && (state === "committed" ? endedAt <= commitBy : endedAt >= deadline), id);
    const settlement = said[index];
    // Without an answer to the first try, the second says how it ended.
    if (settlement !== undefined && settlement.outcome !== "too_late") {
      assert.deepEqual("reservation" in settlement && settlement.reservation, reservation);
    } else {
      assert.equal(state, "abandoned", id);
    }
  }
  const held = await ask<{ id: string }[]>(object, "held");
  assert.deepEqual(held.map(({ id }) => id).sort(), [...ids].sort());
  const left = await until(
    () => ask<{ timers: number; alarm: number | null }>(object, "left"),
    ({ timers, alarm }) => timers === 0 && alarm === null,
    CLAIM_MS,
  );
  assert.deepEqual(left, { timers: 0, alarm: null });
  const committed = reservations.filter(({ state }) => state === "committed").length;
  assert.ok(committed > 0 && committed < SEATS);
  t.diagnostic(`${committed} of ${SEATS} reservations committed over ${KILLS} kills, the others abandoned`);
});
