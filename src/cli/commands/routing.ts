import { z } from 'zod';
import type { RuleScope } from '../../domain/banks/capabilities';
import { type Env as Environment, isLive, toEnv } from '../../domain/environment';
import {
  listRouting,
  type RoutingLine,
  type RuleChange,
  removeRule,
  setRule,
} from '../../service/banks/routing/change';
import { openNoted } from '../acting-operator';
import { defineCommand, defineGroup } from '../command';
import { type CliContext, readRoutes } from '../context';
import { Currency, Env, idOption, NOTED, ON_LIVE } from '../options';
import { formatTime, printFields, printList } from '../output';

const Method = z
  .string()
  .describe('payment method, rail, or asset such as eth_ethereum')
  .meta({ argument: true });
const OfAccount = idOption('only for this account').optional();

const SCOPE = {
  env: Env,
  currency: Currency.optional().describe('only for this currency'),
  account: OfAccount,
};

const show = defineCommand({
  name: 'show',
  description: 'show which connector serves which method, rail and asset, and what says so',
  options: z.object({ env: Env.optional(), account: OfAccount }),
  notes: `
The most specific line decides: of account and currency, account, currency, or neither. With --account, only
the lines that decide something for it.`,
  example: 'routing show --env live --account acct_…',
  run: async (context, { env, account: account_id }) => {
    const deps = { ...(await context.readDeps()), ...readRoutes(context) };
    printList(context, {
      rows: await listRouting(deps, { env, account_id }),
      present: ({ livemode, ...line }) => ({ env: toEnv(livemode), ...line }),
      columns: {
        ENVIRONMENT: 'env',
        METHOD: 'method',
        CURRENCY: ({ currency }) => currency ?? 'any',
        ACCOUNT: ({ account_id: owner }) => owner ?? 'any',
        CONNECTOR: formatConnector,
        FROM: 'source',
        SET: 'set_at',
        SEEN: formatSeen,
      },
      none: 'No connector serves anything there: LIVE_CONNECTORS names none.',
    });
  },
});

function formatConnector({
  connector,
  served,
  paused_at,
  missing,
  contract,
  contract_known,
  env,
}: Omit<RoutingLine, 'livemode'> & { env: Environment }) {
  const variable = env === 'live' ? 'LIVE_CONNECTORS' : 'SANDBOX_CONNECTORS';
  if (!served) return `${connector} (refused: not in ${variable})`;
  if (paused_at !== null) return `${connector} (paused since ${formatTime(paused_at)})`;
  if (!contract_known) return `${connector} (contract ${contract} is not known)`;
  return missing.length === 0 ? connector : `${connector} (lacks ${missing.join(', ')})`;
}

function formatSeen({ seen_at, silent }: Pick<RoutingLine, 'seen_at' | 'silent'>): string {
  if (seen_at === null) return 'never';
  return silent ? `not since ${formatTime(seen_at)}` : 'now';
}

const set = defineCommand({
  name: 'set',
  description:
    'route new payments and payouts to a connector, without a restart; again changes nothing',
  options: z.object({
    method: Method,
    connector: z.string().describe('who serves it from now on').meta({ argument: true }),
    ...SCOPE,
    unseen: z
      .boolean()
      .default(false)
      .describe('also if no process of the connector has ever reported'),
    ...NOTED,
  }),
  notes: `
LIVE_CONNECTORS or SANDBOX_CONNECTORS has to name the connector for the method, which its process has to report,
too. It takes effect within seconds; what exists stays with its connector. ${ON_LIVE}`,
  example: `routing set sepa_credit_transfer acme --env live --currency EUR --reason "Ticket 42"`,
  run: async (context, { method, connector, unseen, env, currency, account, ...typed }) => {
    const scope = toScope(method, { env, currency, account });
    const { deps, note } = await openNoted(context, scope, typed);
    const routed = { ...deps, ...readRoutes(context) };
    printChange(context, await setRule(routed, scope, { connector, unseen }, note));
  },
});

const remove = defineCommand({
  name: 'remove',
  description: 'remove a rule, so that the next less specific line decides',
  options: z.object({ method: Method, ...SCOPE, ...NOTED }),
  notes: `It takes effect within seconds. ${ON_LIVE}`,
  example: 'routing remove sepa_credit_transfer --env live --currency EUR --reason "Ticket 42"',
  run: async (context, { method, env, currency, account, ...typed }) => {
    const scope = toScope(method, { env, currency, account });
    const { deps, note } = await openNoted(context, scope, typed);
    printChange(context, await removeRule(deps, scope, note));
  },
});

function toScope(
  method: string,
  {
    env,
    currency,
    account,
  }: { env: Environment; currency?: string | undefined; account?: string | undefined },
): RuleScope {
  const livemode = isLive(env);
  return { livemode, method, currency: currency ?? null, account_id: account ?? null };
}

function printChange(context: CliContext, { scope, before, after, seen }: RuleChange): void {
  const { livemode, ...rule } = scope;
  const env = toEnv(livemode);
  const changed = before !== after;
  const done = changed
    ? 'It takes effect within seconds. What exists stays with its connector.'
    : 'It was so already.';
  const note = seen?.silent === true ? `${done} ${WAITS}` : done;
  printFields(context, { json: { env, ...rule, before, after, changed, ...seen }, note }, [
    ['Environment', env],
    ['Method', rule.method],
    ['Currency', rule.currency ?? 'any'],
    ['Account', rule.account_id ?? 'any'],
    ['Rule before', before ?? 'none'],
    ['Rule now', after ?? 'none'],
    ['Connector seen', seen && formatSeen(seen)],
  ]);
}

const WAITS = 'Until its process runs, what is created waits.';

export const routingCommands = defineGroup({
  name: 'routing',
  description: 'which connector serves what, by account and currency, changed without a restart',
  commands: [show, set, remove],
});
