#!/usr/bin/env node
import { PaymentsError } from '../errors';
import { VERSION } from '../version';
import { LISTEN_HELP, runListen } from './listen-command';
import { runTrigger, TRIGGER_HELP } from './trigger-command';

const HELP = `Usage: durable-payments COMMAND [OPTIONS]

Commands:
  listen    forward the events of a sandbox to a server on this machine
  trigger   make an event happen

Run durable-payments COMMAND --help for its options.
`;

const COMMANDS = {
  listen: { run: runListen, help: LISTEN_HELP },
  trigger: { run: runTrigger, help: TRIGGER_HELP },
};

async function main([name = '', ...args]: string[]): Promise<number> {
  if (name === '--version') {
    process.stdout.write(`${VERSION}\n`);
    return 0;
  }
  const command = Object.entries(COMMANDS).find(([each]) => each === name)?.[1];
  if (command === undefined) {
    const isHelp = name === '' || name === '--help' || name === 'help';
    (isHelp ? process.stdout : process.stderr).write(isHelp ? HELP : `Unknown: ${name}\n\n${HELP}`);
    return isHelp ? 0 : 2;
  }
  if (args.includes('--help')) {
    process.stdout.write(command.help);
    return 0;
  }
  return await command.run(args);
}

main(process.argv.slice(2)).then(
  (code) => {
    process.exitCode = code;
  },
  (error: unknown) => {
    // What the user can act on has words; anything else is a fault of this program.
    const isExpected = error instanceof PaymentsError || isUsage(error);
    process.stderr.write(`${isExpected ? (error as Error).message : (error as Error).stack}\n`);
    process.exitCode = isUsage(error) ? 2 : 1;
  },
);

function isUsage(error: unknown): boolean {
  return error instanceof TypeError && 'code' in error;
}
