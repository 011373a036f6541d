// Goal: an object may change between the main entry and the one with the built-in kinds, and loses nothing. Method: an
// object whose class is made anew with the other entry's timers, under a virtual clock.
import assert from "node:assert/strict";
import { it } from "node:test";
import { Timers } from "@dueline/durable-object";
import { Timers as TimersWithKinds } from "@dueline/durable-object/kinds";
import { TestClock, TestObject } from "@dueline/durable-object/testing";
import { DurableObject } from "cloudflare:workers";

type Kinds = { ring: string };

const HOUR_MS = 3_600_000;
const rung: string[] = [];
const handlers = { ring: ({ payload }: { readonly payload: string }) => () => void rung.push(payload) };

/** Which entry the next instance has its timers of. */
let hasKinds = false;

class Changing extends DurableObject {
  readonly kinds = hasKinds ? new TimersWithKinds<Kinds>(this.ctx, { handlers, builtIns: { tickets: {} } }) : undefined;
  readonly timers = this.kinds ?? new Timers<Kinds>(this.ctx, { handlers });

  override async alarm(info?: AlarmInvocationInfo): Promise<void> {
    await this.timers.alarm(info);
  }

  get tickets() {
    assert.ok(this.kinds);
    return this.kinds.tickets;
  }
}

it("an object changes its entry and back, and keeps its timers and its tickets", async () => {
  const clock = TestClock.install();
  try {
    const object = await TestObject.open(clock, Changing);
    await object.instance.timers.schedule("ring", { after: HOUR_MS, payload: "main" });

    hasKinds = true;
    await object.restart();
    await object.instance.tickets.open({ resource: "seat", ttl: 3 * HOUR_MS });
    await object.instance.timers.schedule("ring", { after: 2 * HOUR_MS, payload: "kinds" });
    await clock.advance(HOUR_MS);
    assert.deepEqual(rung, ["main"]);

    hasKinds = false;
    await object.restart();
    await clock.advance(4 * HOUR_MS);
    assert.deepEqual(rung, ["main", "kinds"]);
    const counts = await object.instance.timers.counts();
    assert.deepEqual(
      counts.filter(({ timers }) => timers > 0).map(({ timers, isKnown }) => [timers, isKnown]),
      [[1, false]],
    );

    hasKinds = true;
    await object.restart();
    assert.equal(await object.instance.tickets.openCount({ resource: "seat" }), 1);
    await clock.advance(HOUR_MS);
    assert.equal(await object.instance.tickets.openCount({ resource: "seat" }), 0);
  } finally {
    clock.uninstall();
  }
});
