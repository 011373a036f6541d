// Goal: what an object's built-in kinds are is looked at when it is made; its own kinds and theirs do not get into
// each other's way, and what commits with a timer fits. Method: objects under a virtual clock.
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { TimerObject, Timers, done, reschedule, type BuiltIns, type Lease, type Together } from "@dueline/durable-object/kinds";
import { TestClock, TestObject } from "@dueline/durable-object/testing";
import { DurableObject } from "cloudflare:workers";
import { coded } from "./venue.js";

type Kinds = { tick: undefined };
type Options = ConstructorParameters<typeof Timers<Kinds>>[1];

const sinks = { mail: (): void => undefined };
let options: Options;

class Room extends DurableObject {
  readonly timers = new Timers<Kinds>(this.ctx, { log: false, ...options });
  override async alarm(info?: AlarmInvocationInfo): Promise<void> {
    await this.timers.alarm(info);
  }
}

let clock: TestClock;

async function open(wanted: Partial<Options>): Promise<TestObject<Room>> {
  options = { handlers: { tick: () => undefined }, ...wanted };
  return TestObject.open(clock, Room);
}

beforeEach(() => {
  clock = TestClock.install();
});
afterEach(() => clock.uninstall());

describe("built-in kinds", () => {
  const WRONG: Record<string, unknown> = {
    "a kind that is none": { lease: {} },
    "leases that are only there": { leases: true },
    "leases without options": { leases: null },
    "a drain that is no function": { leases: { drain: "drained" } },
    "tickets that are only there": { tickets: false },
    "an onAbandon that is no function": { reservations: { onAbandon: {} } },
    "outboxes in a list of names": { outboxes: ["mail"] },
    "a quota without a window": { quotas: { calls: {} } },
    "a look alone": { gated: { look: () => [] } },
  };
  for (const [what, builtIns] of Object.entries(WRONG)) {
    it(`are refused if there are ${what}`, async () => {
      await assert.rejects(open({ builtIns: builtIns as BuiltIns }), coded("invalid"));
    });
  }

  it("tell no outbox that is not there", async () => {
    await assert.rejects(open({ builtIns: { tickets: { outbox: "mail" } } }), coded("unknown_kind"));
    await open({ builtIns: { tickets: { outbox: "mail" }, outboxes: sinks } });
  });

  it("have the names with a dollar to themselves", async () => {
    for (const name of ["$lease_sweep", "$alarm", "$"]) {
      await assert.rejects(open({ handlers: { [name]: () => undefined } as never }), coded("invalid"));
    }
  });

  it("may be named by what the fields of the object's class hold", async () => {
    const asked: string[] = [];
    class Held extends TimerObject<Kinds> {
      readonly drain = ({ name }: Lease): "drained" => {
        asked.push(name);
        return "drained";
      };
      readonly sinks = sinks;
      get open() {
        return this.timers;
      }
      protected override handlers() {
        return { tick: () => undefined };
      }
      protected override builtIns(): BuiltIns {
        return { leases: { drain: this.drain }, outboxes: this.sinks, quotas: { calls: { window: 60_000 } } };
      }
    }
    const held = await TestObject.open(clock, Held);
    const { leases, outboxes, quotas } = held.instance.open;
    await leases.grant("leader", { owner: "ann", term: 1_000 });
    assert.deepEqual(await outboxes.append("mail", [{ id: "a" }]), [1]);
    assert.equal((await quotas.charge("calls", [1])).outcome, "charged");
    await clock.advance(1_000);
    assert.deepEqual(asked, ["leader"]);
  });

  it("have timers that only their verbs change", async () => {
    const look = ({ keys }: { keys: readonly string[] }): boolean[] => keys.map(() => false);
    const room = await open({
      builtIns: { gated: { look, release: () => undefined } },
      handlers: { tick: () => done({ cancel: [{ kind: "$publication_recheck" as never, name: "gated/page" }] }) },
    });
    const { timers } = room.instance;
    const kind = "$publication_recheck" as never;
    await timers.gated.add("page", [{ place: "p", key: "k" }]);
    const [waiting] = (await timers.list(kind)).items;
    assert.equal(waiting?.name, "gated/page");
    await assert.rejects(timers.cancel(kind, "gated/page"), coded("unknown_kind"));
    await assert.rejects(timers.reschedule(kind, "gated/page", { after: 1e9 }), coded("unknown_kind"));
    await timers.schedule("tick", { name: "a", after: 1 });
    await clock.advance(1);
    assert.match((await timers.get("tick", "a"))?.lastError ?? "", /unknown_kind/);
    assert.equal((await timers.list(kind)).items.length, 1);
  });
});

describe("a handler", () => {
  it("is told that its own name is rescheduled in another way", async () => {
    const own = { kind: "tick", name: "a" } as const;
    for (const outcome of [
      done<Kinds>({ schedule: [{ ...own, after: 1 }] }),
      done<Kinds>({ cancel: [own] }),
      reschedule<Kinds>({ after: 1 }, { schedule: [{ ...own, after: 5 }] }),
    ]) {
      const room = await open({ handlers: { tick: () => outcome } });
      const { timers } = room.instance;
      await timers.schedule("tick", { name: "a", after: 1_000 });
      await clock.advance(1_000);
      assert.match((await timers.get("tick", "a"))?.lastError ?? "", /^invalid: .*return `reschedule`$/);
    }
  });
});

describe("tickets whose ends wait for an answer", () => {
  it("all end, however many at a time", async () => {
    let asked = 0;
    const onClose = async (): Promise<void> => {
      asked += 1;
      await new Promise((resolve) => setTimeout(resolve, 1));
    };
    const { timers } = (await open({ builtIns: { tickets: { onClose } } })).instance;
    const ids: string[] = [];
    for (let number = 0; number < 40; number += 1) {
      const opened = await timers.tickets.open({ resource: "hall", ttl: 10_000 });
      ids.push(opened.outcome === "new" ? opened.ticket.id : "");
    }
    const ended = Promise.all(ids.map((id) => timers.tickets.consume(id)));
    for (let turn = 0; turn < 50; turn += 1) {
      await clock.advance(1);
    }
    assert.deepEqual(new Set((await ended).map(({ outcome }) => outcome)), new Set(["done"]));
    assert.equal(await timers.tickets.openCount({ resource: "hall" }), 0);
    assert.ok(asked >= 40);
  });
});

describe("what goes with a timer", () => {
  type Work = { work: undefined; other: undefined };
  const names = Array.from({ length: 19 }, (_, index) => `n${index}`);
  let together: Together<Work> = {};
  let writes = 0;

  class Worker extends TimerObject<Work> {
    get open() {
      return this.timers;
    }
    protected override handlers() {
      return {
        work: () => done<Work>({ ...together, effects: () => void (writes += 1) }),
        other: () => undefined,
      };
    }
    protected override builtIns(): BuiltIns {
      return { outboxes: Object.fromEntries(names.map((name) => [name, () => undefined])) };
    }
  }

  const schedule = (some: readonly string[]) => some.map((name) => ({ kind: "other" as const, name, after: 1e9 }));
  const cancel = (some: readonly string[]) => some.map((name) => ({ kind: "other" as const, name }));
  const outbox = (some: readonly string[]) => some.map((name) => ({ name, id: "a" }));
  const FITS: Record<string, Together<Work>> = {
    "timers that replace others": { schedule: schedule(names.slice(0, 18)) },
    "timers that are cancelled": { cancel: cancel(names.slice(0, 18)) },
    "outcomes, each in an outbox of its own": { outbox: outbox(names.slice(0, 18)) },
    "all of these": {
      schedule: schedule(names.slice(0, 6)),
      cancel: cancel(names.slice(6, 12)),
      outbox: outbox(names.slice(12, 18)),
    },
  };
  for (const [what, fits] of Object.entries(FITS)) {
    it(`fits if it is 18 ${what}, and no more`, async () => {
      const { open } = (await TestObject.open(clock, Worker)).instance;
      for (const name of names) {
        await open.schedule("other", { name, after: 1e8 });
      }
      [together, writes] = [fits, 0];
      await open.schedule("work", { name: "a", after: 1 });
      await clock.advance(1);
      assert.deepEqual([(await open.get("work", "a"))?.lastError, writes], [undefined, 1]);
      together = { ...fits, outbox: [...(fits.outbox ?? []), ...outbox(["n18"])] };
      await open.schedule("work", { name: "a", after: 1 });
      await clock.advance(1);
      assert.match((await open.get("work", "a"))?.lastError ?? "", /^invalid: .*18/);
      assert.equal(writes, 1);
    });
  }
});
