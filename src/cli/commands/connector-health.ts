import { z } from 'zod';
import { toEnv } from '../../domain/environment';
import { ServiceError } from '../../domain/errors';
import { KINDS } from '../../lifecycles';
import { readConnectorHealth } from '../../service/connector-health';
import { defineCommand } from '../command';
import { fields, formatTime } from '../output';
import { readRoutes } from './routing';

export const connectorHealth = defineCommand({
  name: 'health',
  description: 'see whether it takes instructions, what waits, and what needs an operator',
  options: z.object({ name: z.string().describe('the connector').meta({ argument: true }) }),
  notes: `
Exit code 1 if it has a fault; a pause is none. A bank that does not answer shows once something needs an operator.`,
  example: 'connector health acme',
  run: async (context, { name }) => {
    const settings = context.settings();
    const health = await readConnectorHealth(
      {
        ...(await context.withTemporal(await context.readDeps())),
        ...readRoutes(context),
        namespace: settings.temporal.namespace,
        taskQueuePrefix: settings.taskQueuePrefix,
      },
      name,
    );
    const { livemode, faults, pause, stopped, report, instructions, resources, ...rest } = health;
    const env = toEnv(livemode);
    const running = KINDS.filter((kind) => resources[kind].running > 0).map((kind) => {
      const { running: count, attention } = resources[kind];
      const marked = attention === 0 ? '' : ` (${attention} need an operator)`;
      return [`${kind.replace('_', ' ')}s`, `${count}${marked}`] as const;
    });
    const { pollers, waiting, oldest_seconds } = instructions;
    const text = fields([
      ['Connector', name],
      ['Environment', env],
      ['Paused', pause === null ? 'no' : `since ${formatTime(pause.paused_at)}`],
      ['Pause', pause?.reason ?? undefined],
      ['Stopped', stopped === null ? undefined : `since ${formatTime(stopped.at)}`],
      ['Processes', `${pollers} take instructions`],
      ['Instructions', waiting === 0 ? 'none wait' : `${waiting} wait, up to ${oldest_seconds} s`],
      ['Serves', report?.serves.join(', ')],
      ['Reported', report === null ? 'never' : formatTime(report.seen_at)],
      ...running.map(([kind, count]) => [`Running ${kind}`, count] as const),
      ['Callbacks', rest.callbacks_waiting === 0 ? 'none wait' : `${rest.callbacks_waiting} wait`],
      ['Keys', String(rest.keys)],
    ]);
    const json = { ...{ connector: name, env, healthy: faults.length === 0, faults }, ...rest };
    context.print({
      json: { ...json, pause, stopped, instructions, report, resources },
      text: [text, faults.length === 0 ? 'No fault is known.' : faults.join('\n')].join('\n\n'),
    });
    if (faults.length === 0) return;
    throw new ServiceError('connector_unhealthy', `${name} has ${faults.length} faults.`);
  },
});
