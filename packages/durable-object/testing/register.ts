// Lets Node load what only the platform has: `node --import @dueline/durable-object/testing/register`.
import { register } from "node:module";

register("./hooks.js", import.meta.url);
