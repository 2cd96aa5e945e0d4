import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';
import { ServiceError } from '../../domain/errors';
import type { ClockStart, ClockTarget } from '../../domain/merchants/clock';
import { parseDuration } from '../../domain/merchants/clock-request';
import { formatMoney } from '../../domain/money/money';
import { formatCount } from '../../domain/printable';
import { SANDBOX_CONNECTOR } from '../../routing';
import { registerSandboxAccounts } from '../../service/banks/bank-accounts';
import { writeDayStatements } from '../../service/banks/sandbox-bank/statements';
import { findAccount } from '../../service/merchants/accounts';
import { advanceClock, getClock, stopClock } from '../../service/merchants/clock';
import { startAdvance, stopAdvance } from '../../temporal/clock';
import { defineCommand, defineGroup } from '../command';
import type { CliContext } from '../context';
import { AccountId } from '../options';
import { formatTime, printFields, printList } from '../output';

const POLL_MS = 200;

const show = defineCommand({
  name: 'show',
  description: 'show the time of an account in the sandbox',
  options: z.object({ account_id: AccountId }),
  example: 'clock show acct_…',
  run: async (context, { account_id }) => {
    const deps = await context.readDeps();
    await findAccount(deps.stores, account_id);
    print(context, await getClock({ ...deps, now: context.now }, account_id));
  },
});

const advance = defineCommand({
  name: 'advance',
  description: 'move the time of an account in the sandbox forward, and wait until it is there',
  options: z.object({
    account_id: AccountId,
    by: z.string().optional().meta({
      description: 'days, hours, minutes or seconds, as P60D or PT30M',
      placeholder: 'duration',
    }),
    to: z.iso
      .datetime({ offset: true, error: 'A time is written 2026-11-30T12:00:00Z.' })
      .optional()
      .meta({ description: 'time of the account', placeholder: 'time' }),
  }),
  notes: `
Everything that waits in this account happens in order: payments expire, refund windows close, webhooks are
retried. The clock never goes back, and live has none.`,
  example: 'clock advance acct_… --by P60D',
  run: async (context, { account_id, by, to }) => {
    const deps = await openDeps(context, account_id);
    if ((by === undefined) === (to === undefined)) {
      throw new ServiceError('invalid_usage', 'Give either --by or --to.');
    }
    const by_ms = parseDuration(by ?? '') || undefined;
    const request = to === undefined ? by_ms !== undefined && { by_ms } : { to };
    if (!request) {
      const message = 'A duration has days, hours, minutes or seconds, as P60D or PT30M.';
      throw new ServiceError('invalid_usage', message);
    }
    let clock = await advanceClock(deps, account_id, request);
    while (clock.state === 'advancing') {
      context.progress(`at ${clock.now}`);
      await wait(POLL_MS);
      clock = await getClock(deps, account_id);
    }
    print(context, clock);
  },
});

const stop = defineCommand({
  name: 'stop',
  description: 'stop the time of an account in the sandbox where it is',
  options: z.object({ account_id: AccountId }),
  notes: 'Ends an advance before its target. A clock that stands stays as it is.',
  example: 'clock stop acct_…',
  run: async (context, { account_id }) => {
    print(context, await stopClock(await openDeps(context, account_id), account_id));
  },
});

async function openDeps(context: CliContext, account_id: string) {
  const read = await context.readDeps();
  await findAccount(read.stores, account_id);
  const { temporal: client, lifecycleQueue } = await context.withTemporal(read);
  const caller = { client, lifecycleQueue };
  return {
    ...read,
    temporal: {
      startAdvance: (clock: ClockStart, target: ClockTarget) => startAdvance(caller, clock, target),
      stopAdvance: (clock: ClockStart) => stopAdvance(caller, clock),
    },
    connectors: { sandbox: SANDBOX_CONNECTOR },
    now: context.now,
  };
}

function print(context: CliContext, clock: Awaited<ReturnType<typeof getClock>>): void {
  printFields(context, { json: clock }, [
    ['Time', formatTime(clock.now)],
    ['Ahead of the real time', `${clock.offset_seconds} s`],
    ['State', clock.state],
    ['Target', formatTime(clock.target)],
    ['Behind', clock.behind.join(', ') || '-'],
  ]);
}

export const clockCommands = defineGroup({
  name: 'clock',
  description: 'time of an account in the sandbox',
  commands: [show, advance, stop],
});

const statement = defineCommand({
  name: 'statement',
  description: 'write the statements of the sandbox bank up to now, and print the files of a day',
  options: z.object({
    date: z.iso
      .date('A day is written YYYY-MM-DD.')
      .optional()
      .meta({ description: 'the day (UTC), today by default', placeholder: 'day' }),
  }),
  notes: `
A camt.053 for each account and day, in DATA_DIR/statements. The first one that is written begins where the last
one ended; days that were missed are made up. Again without a new movement prints the same files.`,
  example: 'sandbox statement --date 2026-11-22',
  run: async (context, { date }) => {
    const deps = await context.actingDeps();
    const { mongodb, dataDir } = context.settings();
    const day = date ?? context.now().toISOString().slice(0, 10);
    const rows = await writeDayStatements({ ...deps, database: mongodb.db, dataDir }, day);
    await registerSandboxAccounts(
      deps,
      rows.map(({ currency }) => currency),
    );
    printList(context, {
      rows,
      present: (row) => row,
      columns: {
        FILE: 'file',
        ACCOUNT: 'account',
        LINES: ({ lines }) => formatCount(lines, 'line'),
        'CLOSING BALANCE': ({ closing, currency }) => formatMoney(closing, currency),
      },
      none: `The sandbox bank moved no money until the end of ${day}.`,
    });
  },
});

export const sandboxCommands = defineGroup({
  name: 'sandbox',
  description: 'the sandbox bank',
  commands: [statement],
});
