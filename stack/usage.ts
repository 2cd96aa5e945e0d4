import { VARIABLES } from './variables';

const NAME_WIDTH = Math.max(...VARIABLES.map(({ name }) => name.length));

const lines = VARIABLES.filter(({ decided }) => !decided).map(
  ({ name, usual, text }) => `  ${name.padEnd(NAME_WIDTH)}  ${text} (default: ${usual})`,
);

/** Output of `npm start -- --help`. */
export const USAGE = `npm start: runs the whole service on this machine.

Finds or fetches Temporal and MongoDB, starts them, the api, the worker and the sandbox bank,
restarts a part that dies, and stops all on Ctrl-C or SIGTERM. The first start makes a demo
account and prints its keys.

  --inspect PART[:PORT]  lets a debugger attach to that process alone: api, worker or
                         sandbox_bank; port 9229 if none is given
  --watch                builds when a source changes and restarts what the change concerns;
                         the servers stay up. \`npm run dev\` is \`npm start -- --watch\`
  --help                 this text

Environment:
${lines.join('\n')}

A second stack runs beside the first with its own PORT, TEMPORAL_UI_PORT and DATA_DIR.
`;
