import { z } from 'zod';
import { isLive, toEnv } from '../../domain/environment';
import { ServiceError } from '../../domain/errors';
import { releaseConnector } from '../../service/connector-release';
import { openNoted } from '../acting-operator';
import { defineCommand } from '../command';
import { Env, Operator, Reason } from '../options';
import { formatTime, printFields } from '../output';
import { readRoutes } from './routing';

export const connectorRelease = defineCommand({
  name: 'release',
  description: 'let a connector that a restore has stopped send again; again changes nothing',
  options: z.object({
    name: z.string().describe('the connector').meta({ argument: true }),
    env: Env,
    after_restore: z
      .boolean()
      .default(false)
      .describe('the bank was compared with the restored database, and nothing is paid twice'),
    operator: Operator.optional(),
    reason: Reason,
  }),
  notes: `
First compare with the bank, and end what it has executed (docs/operators.md, "Release a connector"): the
connector sends all that its database has as unsent. Its process reads the release within 15 seconds. On live
it needs OPERATOR_KEY.`,
  example:
    'connector release sepa --env live --after-restore --reason "Ticket 42: no file since noon"',
  run: async (context, { name: connector, env, after_restore, reason, operator: typed }) => {
    if (!after_restore) {
      const message = '--after-restore says that the bank was compared with the restored database.';
      throw new ServiceError('invalid_usage', message);
    }
    const livemode = isLive(env);
    const { deps, note } = await openNoted(context, { livemode }, { operator: typed, reason });
    const routed = { ...deps, ...readRoutes(context) };
    const { operator } = note;
    const done = await releaseConnector(routed, { connector, livemode }, { operator, reason });
    const { stopped_for, stopped_at, changed } = done;
    const json = { connector, env: toEnv(livemode), changed, stopped_for, stopped_at };
    const hint = changed ? 'It sends again within 15 seconds.' : 'It was released already.';
    printFields(context, { json, note: hint }, [
      ['Connector', connector],
      ['Environment', env],
      ['Stopped', `since ${formatTime(stopped_at)}`],
      ['Stopped for', stopped_for],
      ['Operator', operator],
    ]);
  },
});
