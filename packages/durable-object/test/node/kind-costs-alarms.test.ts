// What leases, tickets, outboxes and gated records read and write, counted by the platform.
import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { Workerd, until } from "./workerd.js";

interface Counted {
  readonly read: number;
  readonly written: number;
  readonly alarms: number;
}

interface Alarms {
  readonly alarms: readonly Counted[];
  readonly isAtRest: boolean;
}

let workerd: Workerd;
before(async () => {
  workerd = await Workerd.start({ entry: "kind-costs-alarms.js", classes: ["KindAlarms", "AskingAlarms"], preventEviction: true });
});
after(() => workerd.stop());

const cost = (read: number, written: number, alarms: number): Counted => ({ read, written, alarms });

it("the verbs of leases cost as is documented", async () => {
  assert.deepEqual(await workerd.object("KindAlarms", "leases").call("leases"), {
    grant: cost(3, 3, 0),
    sooner: cost(9, 4, 1),
    held: cost(4, 0, 0),
    get: cost(4, 0, 0),
    renew: cost(6, 2, 0),
    fenced: cost(1, 0, 0),
    fencedOut: cost(1, 0, 0),
    release: cost(8, 2, 0),
    again: cost(5, 3, 0),
    forget: cost(5, 1, 0),
  });
});

it("the verbs of tickets cost as is documented", async () => {
  assert.deepEqual(await workerd.object("KindAlarms", "tickets").call("tickets"), {
    open: cost(6, 5, 0),
    sooner: cost(12, 6, 1),
    existing: cost(6, 0, 0),
    refused: cost(3, 0, 0),
    find: cost(4, 0, 0),
    get: cost(2, 0, 0),
    openCount: cost(2, 0, 0),
    extend: cost(4, 1, 0),
    consume: cost(13, 4, 0),
    release: cost(13, 4, 0),
    gone: cost(2, 0, 0),
    cancel: cost(11, 3, 1),
  });
});

it("the verbs of outboxes cost as is documented", async () => {
  assert.deepEqual(await workerd.object("KindAlarms", "outboxes").call("outboxes"), {
    behind: cost(3, 2, 0),
    backlog: cost(3, 0, 0),
    waiting: cost(4, 0, 0),
    wake: cost(4, 2, 0),
    setAside: cost(5, 3, 0),
    dead: cost(3, 0, 0),
    requeue: cost(7, 3, 0),
  });
});

it("the verbs of gated records cost as is documented", async () => {
  assert.deepEqual(await workerd.object("KindAlarms", "gated").call("gated"), {
    anew: cost(7, 4, 0),
    get: cost(2, 0, 0),
    lookNow: cost(6, 0, 0),
    remove: cost(3, 1, 0),
  });
});

// What is said, and what the alarm does about it; counted the second time, when the kind is there.
const ALARMS = [
  ["KindAlarms", "expire a lease", cost(7, 4, 1), cost(39, 9, 2)],
  ["AskingAlarms", "expire a lease", cost(7, 4, 1), cost(52, 9, 2)],
  ["KindAlarms", "expire a ticket", cost(5, 6, 1), cost(34, 6, 1)],
  ["AskingAlarms", "expire a ticket", cost(5, 6, 1), cost(48, 11, 2)],
  ["KindAlarms", "deliver", cost(6, 4, 1), cost(57, 10, 2)],
  ["KindAlarms", "release", cost(5, 4, 1), cost(46, 10, 2)],
] as const;

for (const [name, op, said, done] of ALARMS) {
  it(`${name}: to ${op} costs as is documented`, async () => {
    const object = workerd.object(name, op);
    const counted = async (): Promise<unknown> => {
      const verb = await object.call<Counted>(op);
      const isDone = ({ alarms, isAtRest }: Alarms): boolean => alarms.length > 0 && isAtRest;
      return { verb, alarms: (await until(() => object.call<Alarms>("alarms"), isDone)).alarms };
    };
    await counted();
    assert.deepEqual(await counted(), { verb: said, alarms: [done] });
  });
}
