// Goal: a charge and the write that goes with it are one, over kills; no window has more than its limit. Method: a
// real workerd, clients that charge as fast as they can over some windows, `kill -9` at moments drawn from a seed.
import assert from "node:assert/strict";
import { it } from "node:test";
import type { Charge } from "@dueline/durable-object/kinds";
import { drawSeed, random } from "./figures.js";
import { Answered, Workerd, until } from "./workerd.js";

const CLIENTS = 4;
const LIMIT = 20;
const KILLS = 3;
const WINDOW_MS = 2_000;

it("what is charged is what was written, over kills and windows", async (t) => {
  const seed = drawSeed();
  t.diagnostic(`moments of the seed DUELINE_SEED=${seed}`);
  const draw = random(seed);
  const workerd = await Workerd.start({ entry: "quotas.js", classes: ["Meter"] });
  t.after(() => workerd.stop());
  const object = workerd.object("Meter", "meter");
  const begun = Date.now();
  const charged: string[] = [];
  let refused = 0;
  let unanswered = 0;
  let isOver = false;
  const client = async (number: number): Promise<void> => {
    for (let index = 0; !isOver; index += 1) {
      const id = `${number}-${index}`;
      try {
        const charge = await object.call<Charge>("charge", id, index % 100, LIMIT);
        assert.ok((charge.used[0] ?? 0) <= LIMIT);
        if (charge.outcome === "charged") {
          charged.push(id);
        } else {
          refused += 1;
        }
      } catch (thrown) {
        assert.ok(!(thrown instanceof Answered), String(thrown));
        unanswered += 1;
      }
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  const clients = Array.from({ length: CLIENTS }, (_, number) => client(number));
  for (let kill = 0; kill < KILLS; kill += 1) {
    await new Promise((resolve) => setTimeout(resolve, 300 + draw() * 1_200));
    await workerd.kill();
    await workerd.start();
  }
  await until(async () => charged.length > 0 && refused > 0, (hasBoth) => hasBoth);
  isOver = true;
  await Promise.all(clients);
  const requests = await object.call<{ id: string; bytes: number }[]>("requests");
  const ids = new Set(requests.map(({ id }) => id));
  assert.equal(ids.size, requests.length);
  assert.deepEqual(charged.filter((id) => !ids.has(id)), []);
  const totals: number[][] = [];
  for (let at = begun - WINDOW_MS; at < Date.now() + WINDOW_MS; at += WINDOW_MS) {
    totals.push((await object.call<number[] | null>("total", at)) ?? [0, 0, 0, 0]);
  }
  const sum = (counter: number): number => totals.reduce((sum, total) => sum + (total[counter] ?? 0), 0);
  assert.equal(sum(0), requests.length);
  assert.equal(sum(1), requests.reduce((sum, { bytes }) => sum + bytes, 0));
  assert.ok(totals.every(([count = 0]) => count <= LIMIT));
  assert.ok(charged.length > 0 && refused > 0);
  t.diagnostic(
    `${requests.length} charges in windows of ${totals.map(([count]) => count).join(", ")} over ${KILLS} kills; ` +
      `${refused} refused, ${unanswered} without an answer`,
  );
});
