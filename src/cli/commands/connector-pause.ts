import { z } from 'zod';
import { toEnv } from '../../domain/environment';
import {
  findPauseEnvironment,
  type PauseChange,
  pauseConnector,
  resumeConnector,
} from '../../service/routing/pause';
import { openNoted } from '../acting-operator';
import { defineCommand } from '../command';
import type { CliContext } from '../context';
import { Operator, Reason } from '../options';
import { formatTime, printFields } from '../output';
import { readRoutes } from './routing';

const OPTIONS = z.object({
  name: z.string().describe('the connector').meta({ argument: true }),
  operator: Operator.optional(),
  reason: Reason.optional(),
});
type Options = z.output<typeof OPTIONS>;

const ON_LIVE = 'On live it needs OPERATOR_KEY and --reason.';

export const connectorPause = defineCommand({
  name: 'pause',
  description: 'refuse what would be created with it; again changes nothing',
  options: OPTIONS,
  notes: `
Within seconds, its methods, rails and assets are not available any more, unless a routing rule leads to
another connector; scheduled settlements wait for the next day. What exists goes on, refunds too: its money is
at that bank. ${ON_LIVE}`,
  example: 'connector pause acme --reason "Ticket 42: the bank is down until noon"',
  run: (context, options) => change(context, options, pauseConnector),
});

export const connectorResume = defineCommand({
  name: 'resume',
  description:
    'let payments, payouts and settlements be created with it again; again changes nothing',
  options: OPTIONS,
  notes: `It takes effect within seconds. ${ON_LIVE}`,
  example: 'connector resume acme --reason "Ticket 42: the bank is back"',
  run: (context, options) => change(context, options, resumeConnector),
});

async function change(
  context: CliContext,
  { name, ...typed }: Options,
  apply: typeof pauseConnector,
): Promise<void> {
  const routes = readRoutes(context);
  const { stores } = await context.readDeps();
  const scope = await findPauseEnvironment({ stores, ...routes }, name);
  const { deps, note } = await openNoted(context, scope, typed);
  const done = await apply({ ...deps, ...routes }, name, note);
  printChange(context, done);
}

function printChange(context: CliContext, { livemode, pause, changed, ...of }: PauseChange): void {
  const env = toEnv(livemode);
  const { paused_at = null, operator = null, reason = null } = pause ?? {};
  const json = { ...of, env, paused: pause !== null, changed, paused_at, operator, reason };
  const note = changed ? 'It takes effect within seconds.' : 'It was so already.';
  printFields(context, { json, note }, [
    ['Connector', of.connector],
    ['Environment', env],
    ['Paused', pause === null ? 'no' : `since ${formatTime(paused_at)}`],
    ['Operator', operator ?? undefined],
    ['Reason', reason ?? undefined],
  ]);
}
