import { Command, CommanderError } from 'commander';
import type { OpenRebuilder } from '../reconcile/rebuilder';
import { addAccountCommands } from './commands/account';
import { addAuditCommands } from './commands/audit';
import { addBalanceCommands } from './commands/balance';
import { addCallbackCommands } from './commands/callback';
import { addConnectorCommands } from './commands/connector';
import { addDashboardCommands } from './commands/dashboard';
import { addEventCommands } from './commands/event';
import { addKeyCommands } from './commands/key';
import { addKeysCommands } from './commands/keys';
import { addLedgerCommands } from './commands/ledger';
import { addMigrateCommand } from './commands/migrate';
import { addOrphanCommands } from './commands/orphan';
import { addRecipientCommands } from './commands/recipient';
import { addReconcileCommand } from './commands/reconcile';
import { addResourceCommands } from './commands/resource';
import { addRolesCommand } from './commands/roles';
import { addWalletCommands } from './commands/wallet';
import { addWebhookCommands } from './commands/webhook';
import { type CliContext, type CliIo, createContext } from './context';
import { explain } from './failure';
import { clean } from './output';

const NAME = 'npm run -s cli --';

const ABOUT = `
Addresses come from MONGODB_URI, MONGODB_DB, TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, KEYS_FILE and
WEBHOOK_ALLOW_PRIVATE, or else from the stack that \`npm start\` runs (DATA_DIR/stack.json, where
DATA_DIR is .data by default).

Examples:
  ${NAME} account create --name "Acme Shop"
  ${NAME} webhook set acct_… --env sandbox --url http://localhost:4000/hook
  ${NAME} event list acct_… --env sandbox --json
  ${NAME} balance show acct_… --env sandbox
  ${NAME} payout show 0d1f…`;

const EXIT_CODES = `
Exit codes: 0 done; 1 refused or failed, with the reason on stderr
(with --json: {"error": {"code", "message"}}).`;

/**
 * Runs the command line once.
 * @param args without node and script, as `['account', 'list']`
 * @param openRebuilder the worker's steps, which stand above this room
 * @returns the exit code: 0 done, 1 refused or failed. It does not throw.
 */
export async function runCli(
  args: readonly string[],
  io: CliIo,
  openRebuilder: OpenRebuilder,
): Promise<number> {
  const isJson = wantsJson(args);
  const { context, close } = createContext(io, isJson);
  try {
    const program = createProgram(context, io, isJson, openRebuilder);
    await program.parseAsync(args, { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return reportUsage(error, io, isJson);
    const { code, message } = explain(error);
    io.stderr(isJson ? errorJson(code, message) : `${clean(message)}\n`);
    return 1;
  } finally {
    await close();
  }
}

/** Commands of every group, with the help of each. */
export function createProgram(
  context: CliContext,
  io: CliIo,
  isJson: boolean,
  openRebuilder: OpenRebuilder,
): Command {
  const program = new Command()
    .name(NAME)
    .usage('<group> <command> [options]')
    .description(
      'Provision accounts, keys and webhooks, fund and verify balances, see and act on payments, ' +
        'refunds and payouts.',
    )
    .option('--json', 'print one JSON document, for scripts')
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: io.stdout,
      // In JSON mode the error is written once, by reportUsage.
      writeErr: isJson ? () => {} : io.stderr,
      outputError: (text, write) => write(text.replace(/^error: /, '')),
    })
    .exitOverride()
    .showHelpAfterError('Add --help for the options and examples.')
    .addHelpText('after', ABOUT)
    .addHelpText('afterAll', EXIT_CODES);
  addAccountCommands(program, context);
  addKeyCommands(program, context);
  addKeysCommands(program, context);
  addDashboardCommands(program, context);
  addWebhookCommands(program, context);
  addEventCommands(program, context);
  addBalanceCommands(program, context);
  addLedgerCommands(program, context);
  addWalletCommands(program, context);
  addResourceCommands(program, context);
  addMigrateCommand(program, context);
  addRolesCommand(program, context);
  addRecipientCommands(program, context);
  addOrphanCommands(program, context);
  addCallbackCommands(program, context);
  addConnectorCommands(program, context);
  addAuditCommands(program, context);
  addReconcileCommand(program, context, openRebuilder);
  return program;
}

/** Whether `--json` is given, known before parsing, so that faults of the parsing take its form. */
function wantsJson(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end === -1 ? args.length : end).includes('--json');
}

/** Reports what commander made of wrong usage, or of `--help`. */
function reportUsage(error: CommanderError, io: CliIo, isJson: boolean): number {
  if (error.exitCode === 0) return 0;
  if (isJson) {
    const isHelp = error.code === 'commander.help';
    const message = isHelp
      ? 'A command is missing: --help lists them.'
      : error.message.replace(/^error: /, '');
    io.stderr(errorJson('invalid_usage', message));
  }
  return 1;
}

function errorJson(code: string, message: string): string {
  return `${JSON.stringify({ error: { code, message } })}\n`;
}
