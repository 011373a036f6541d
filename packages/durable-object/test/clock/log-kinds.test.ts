// Goal: failures that the package does not see happen, as those of built-in kinds, are told with the alarm's report.
// Method: a lease whose drain fails, under a virtual clock.
import assert from "node:assert/strict";
import { it } from "node:test";
import { Timers, type LogEvent } from "@dueline/durable-object/kinds";
import { TestClock, TestObject } from "@dueline/durable-object/testing";
import { DurableObject } from "cloudflare:workers";

const events: LogEvent[] = [];

class Drained extends DurableObject {
  readonly timers = new Timers<Record<string, never>>(this.ctx, {
    handlers: {},
    builtIns: {
      leases: {
        drain: () => {
          throw new Error("nobody answers");
        },
      },
    },
    log: (event) => void events.push(event),
  });

  override async alarm(info?: AlarmInvocationInfo): Promise<void> {
    await this.timers.alarm(info);
  }
}

it("a failure of a built-in kind is counted with its alarm", async () => {
  const clock = TestClock.install();
  try {
    const object = await TestObject.open(clock, Drained);
    await object.instance.timers.leases.grant("printer", { owner: "ada", term: 10_000 });
    await clock.advance(11_000);
    const alarms = events.map((event) => (event.type === "alarm" ? [event.report.failed, event.untold] : event.type));
    assert.deepEqual(alarms, [[1, { failed: 1, dead: 0 }]]);
  } finally {
    clock.uninstall();
  }
});
