import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { isApprovalRequired } from '../../domain/approval';
import { isLive, toEnv } from '../../domain/environment';
import { formatMoney } from '../../domain/money';
import { assertServes, isLiveConnector } from '../../service/banks/connectors';
import { actOnBalance } from '../../service/money/balances/act';
import { PLATFORM_KINDS } from '../../service/money/balances/platform';
import { auditAs } from '../../service/operators/deps';
import { identifyOperator, printApprovalRequired } from '../acting-operator';
import { defineCommand, defineGroup } from '../command';
import {
  BankReference,
  Currency,
  Env,
  OperationId,
  Operator,
  Reason,
  SignedAmount,
} from '../options';
import { printFields } from '../output';
import { ON_LIVE } from './balance-change';
import { readRoutes } from './routing';
import { Connector } from './statement-output';

const post = defineCommand({
  name: 'post',
  description: "post what a bank moved of the service's own money",
  options: z.object({
    connector: Connector,
    env: Env.optional().describe('environment of the connector, which it has only one of'),
    kind: z.enum(PLATFORM_KINDS).describe('why it moved').meta({ placeholder: 'kind' }),
    amount: SignedAmount.describe('as the statement has it; below 0 leaves the account').meta({
      placeholder: 'minor',
    }),
    currency: Currency,
    bank_reference: BankReference,
    operation_id: OperationId.optional().describe('makes a repeat post nothing'),
    operator: Operator.optional(),
    reason: Reason,
  }),
  notes: `
Kinds: fee_sweep (fees that leave for an account that is not registered), interest (of the bank, or to it), transfer (one end
of a transfer between registered accounts), acquirer_payout (one end of what an acquirer pays out to a registered account). The
two ends of the last two have the same amount, with opposite signs. Each bank reference is posted once. ${ON_LIVE}`,
  example: `platform post --connector acme --kind fee_sweep --amount -125000 --currency EUR \\
    --bank-reference 2026-11-30/4 --reason "Fees of November"`,
  run: async (context, { operation_id, operator: typed, reason, env, ...options }) => {
    const routes = readRoutes(context);
    const { connector, currency, kind, bank_reference } = options;
    const livemode = env === undefined ? isLiveConnector(routes, connector) : isLive(env);
    assertServes(routes, { connector, livemode });
    const amount = options.amount;
    const deps = await context.actingDeps();
    const { verified, operator } = await identifyOperator(context, { livemode, operator: typed });
    const audit = verified && { audit: auditAs(deps, verified.name) };
    const id = operation_id ?? `post_${randomUUID()}`;
    const money = { livemode, connector, kind, currency, bank_reference };
    const call = { ...money, act: 'platform.post', id, amount: `${amount}` } as const;
    const { limits } = context.settings();
    const request = { verified, limits };
    const result = await actOnBalance({ ...deps, ...audit }, call, { operator, reason }, request);
    if (isApprovalRequired(result)) return printApprovalRequired(context, result);
    const { operation_id: posted } = result;
    const json = { operation_id: posted, connector, env: toEnv(livemode), kind, amount, currency };
    printFields(context, { json: { ...json, bank_reference } }, [
      ['Posted', `${formatMoney(amount, currency)}, ${kind}`],
      ['Connector', `${connector}, ${json.env}`],
      ['Bank reference', bank_reference],
      ['Operation', posted],
    ]);
  },
});

export const platformCommands = defineGroup({
  name: 'platform',
  description: "the service's own money at its banks",
  commands: [post],
});
