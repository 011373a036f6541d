// What reservations and quotas read and write, counted by the platform.
import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { Workerd, until } from "./workerd.js";

interface Counted {
  readonly read: number;
  readonly written: number;
  readonly alarms: number;
}

let workerd: Workerd;
before(async () => {
  workerd = await Workerd.start({ entry: "kind-costs.js", classes: ["KindCosts"], preventEviction: true });
});
after(() => workerd.stop());

const cost = (read: number, written: number, alarms: number): Counted => ({ read, written, alarms });

it("a reservation costs as is documented", async () => {
  const object = workerd.object("KindCosts", "reservations");
  assert.deepEqual(await object.call("reservations"), {
    reserve: cost(2, 2, 0),
    sooner: cost(6, 3, 1),
    exists: cost(2, 0, 0),
    get: cost(2, 0, 0),
    extend: cost(3, 1, 0),
    commit: cost(3, 1, 0),
    abort: cost(3, 1, 0),
    endedBefore: cost(2, 0, 0),
    forget: cost(4, 1, 0),
  });
});

it("the alarm of a reservation costs as is documented", async () => {
  const object = workerd.object("KindCosts", "alarms");
  const alarm = (): Promise<Counted | null> => until(() => object.call<Counted | null>("alarm"), (found) => found !== null);
  await object.call("reserve", "warm", 3_600_000);
  await object.call("reserve", "abandoned", 20);
  assert.deepEqual(await alarm(), cost(18, 3, 1), "abandoned");
  await object.call("reserve", "goes", 20, 0);
  assert.deepEqual(await alarm(), cost(19, 3, 1), "abandoned, and gone");
  // As long as a slow machine may need until it commits.
  const serial = await object.call("reserve", "committed", 2_500);
  await object.call("commit", "committed", serial);
  assert.deepEqual(await alarm(), cost(18, 2, 1), "committed");
});

it("a charge costs as is documented", async () => {
  const object = workerd.object("KindCosts", "quotas");
  assert.deepEqual(await object.call("quotas"), {
    first: cost(2, 2, 0),
    next: cost(3, 1, 0),
    refused: cost(2, 0, 0),
    usage: cost(2, 0, 0),
  });
});
