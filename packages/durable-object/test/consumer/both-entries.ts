// Goal: the declarations of the package compile in a project that checks its libraries and knows no newer JavaScript
// than the platform's oldest programs. Method: both entries, with all that they declare; nothing here is run.
import * as main from "@dueline/durable-object";
import * as kinds from "@dueline/durable-object/kinds";

export class Room extends main.TimerObject<{ close: string }> {
  protected override handlers(): main.Handlers<{ close: string }> {
    return { close: ({ payload }) => main.dead(payload) };
  }
}

export class Office extends kinds.TimerObject<{ close: string }> {
  protected override handlers(): kinds.Handlers<{ close: string }> {
    return { close: () => kinds.done() };
  }
  protected override builtIns(): kinds.BuiltIns {
    return { tickets: {}, leases: {}, gated: { look: ({ keys }) => keys.map(() => true), release: () => undefined } };
  }
}
