// The third deployment: `moved` has its name back, and `strict` reads what it used to.
import type { Handlers } from "@dueline/durable-object";
import { DeployedBase, type Kinds } from "./deployed.js";
import { router } from "./router.js";

export class Deployed extends DeployedBase {
  protected deployed(): Partial<Handlers<Kinds>> {
    return {
      known: (timer) => () => this.effect(timer),
      moved: (timer) => () => this.effect(timer),
      renamed: (timer) => () => this.effect(timer),
      strict: { version: 2, run: (timer) => () => this.effect(timer) },
    };
  }
}

export default router;
