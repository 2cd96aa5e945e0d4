import { parseArgs } from 'node:util';
import type { Db } from 'mongodb';
import type { Logger } from '../../src/base/log';
import { createDeposits } from './deposits';
import { createFindings } from './findings';
import { createSettlements } from './settlements';

const DUST_MAX = 100;
const REPEAT_COMMAND = 'tell-again';

const USAGE = `Commands, in the environment of the connector, which may run:
  findings               what an operator has to look at
  acknowledge ID         takes a finding off the list
  dust                   the newest ${DUST_MAX} deposits below the least amount
  ${REPEAT_COMMAND} --since T   repeats all reports since T (ISO 8601) under the present key`;

interface CommandDeps {
  db: Db;
  now: () => Date;
  log: Pick<Logger, 'error'>;
}

/** @throws Error with the usage */
export async function runCommand(deps: CommandDeps, args: string[]): Promise<unknown> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { since: { type: 'string' } },
  });
  const [name, id] = positionals;
  const findings = createFindings(deps);
  switch (name) {
    case 'findings':
      return { findings: await findings.open() };
    case 'acknowledge':
      if (id === undefined || !(await findings.acknowledge(id))) {
        throw new Error('There is no open finding with this ID.');
      }
      return { acknowledged: id };
    case 'dust':
      return {
        dust: (await createDeposits(deps.db).dust(DUST_MAX)).map(
          ({ crypto_payment_id, asset, amount, transaction_id, mined_at }) => ({
            crypto_payment_id,
            asset,
            amount,
            transaction_id,
            mined_at,
          }),
        ),
      };
    case REPEAT_COMMAND: {
      // The running connector repeats them: those that were applied change nothing.
      const since = new Date(values.since ?? '');
      if (Number.isNaN(since.getTime())) throw new Error('--since must be a time, in ISO 8601.');
      if (since > deps.now()) throw new Error('--since must be in the past.');
      return {
        deposits: await createDeposits(deps.db).repeatSince(since),
        settlements: await createSettlements(deps.db).repeatSince(since),
      };
    }
    default:
      throw new Error(USAGE);
  }
}
