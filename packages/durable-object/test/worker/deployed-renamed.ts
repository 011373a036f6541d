// The second deployment: `moved` is called `renamed`, and `strict` does not read what it used to.
import type { Handlers } from "@dueline/durable-object";
import { DeployedBase, type Kinds } from "./deployed.js";
import { router } from "./router.js";

export class Deployed extends DeployedBase {
  protected deployed(): Partial<Handlers<Kinds>> {
    return {
      known: (timer) => () => this.effect(timer),
      renamed: (timer) => () => this.effect(timer),
      strict: {
        parse: () => {
          throw new Error("a newer form was expected");
        },
        run: (timer) => () => this.effect(timer),
      },
    };
  }
}

export default router;
