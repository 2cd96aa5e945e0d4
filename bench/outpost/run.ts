import { setMaxListeners } from 'node:events';
import type { Options } from '../options';
import type { Report, Row } from '../report';
import type { Setting } from '../servers/config';
import { killAmidBurst, type Load, runBurst, runSteadily } from './load';
import { withOutpost } from './outpost';
import { withProduct } from './product';
import { findPrograms } from './provision';
import { startReceiver } from './receiver';
import { buildKillRows, buildSampleRows, type Samples } from './rows';
import type { System } from './system';

/** Share of a burst's rate at which times are measured. */
const CALM_SHARE = 1 / 2;

/**
 * Delivers webhooks by hookdeck/outpost and by the product, in alternating rounds, and kills the
 * processes of both. @see docs/benchmark.md#compared-with-outpost
 * @throws OperationalError naming the server that can't be had
 */
export async function runOutpost(options: Options, setting: Setting): Promise<Report> {
  const programs = await findPrograms(setting);
  const receiver = await startReceiver();
  const { url: receiverUrl } = receiver;
  // Each publisher that waits before it tries again listens.
  setMaxListeners(0, setting.signal);
  try {
    return await withProduct(setting, receiverUrl, (product) =>
      withOutpost(setting, { programs, receiverUrl }, (outpost) => {
        const load = { receiver, concurrency: options.concurrency, signal: setting.signal };
        return compare({ outpost, product }, load, options, setting);
      }),
    );
  } finally {
    receiver.close();
  }
}

interface Systems {
  outpost: System;
  product: System;
}

async function compare(
  systems: Systems,
  load: Load,
  options: Options,
  { progress }: Setting,
): Promise<Report> {
  const { payments, concurrency, rounds, measurements } = options;
  const both = [systems.product, systems.outpost];
  const rows: Row[] = [];
  for (const system of both) {
    const count = payments * system.share;
    await progress.during(`Warming up ${system.name}`, () => runBurst(system, count, load));
  }
  if (measurements.includes('rates')) {
    rows.push(...(await measureRates(systems, load, options, progress)));
  }
  for (const system of measurements.includes('kills') ? both : []) {
    rows.push(...(await killEach(system, payments * system.share, load, progress)));
  }
  const each = both.map(({ name, share }) => `${payments * share} of ${name}`).join(', ');
  const notes = [`${rounds} rounds of events, ${each}; ${concurrency} publishers`];
  return { columns: ['outpost', 'product'], rows, notes };
}

async function measureRates(
  systems: Systems,
  load: Load,
  { payments, rounds }: Options,
  progress: Setting['progress'],
): Promise<Row[]> {
  const samples = { outpost: createSamples(), product: createSamples() };
  for (let round = 1; round <= rounds; round += 1) {
    for (const system of [systems.product, systems.outpost]) {
      const burst = await runBurst(system, payments * system.share, load);
      samples[system.name].bursts.push(burst);
      const rate = burst.perSecond.toFixed(1);
      progress.line(`round ${round}  ${system.name}: ${rate} webhooks a second`);
    }
    const title = `Round ${round}, at half of the rate`;
    await progress.during(title, () => measureTimes(systems, samples, payments, load));
  }
  return buildSampleRows(samples);
}

function createSamples(): Samples {
  return { bursts: [], calm: [], same: [] };
}

async function measureTimes(
  { outpost, product }: Systems,
  samples: Record<System['name'], Samples>,
  payments: number,
  load: Load,
): Promise<void> {
  const rate = ({ name }: System) => CALM_SHARE * (samples[name].bursts.at(-1)?.perSecond ?? 1);
  const slow = { count: payments, perSecond: rate(product) };
  const fast = { count: payments * outpost.share, perSecond: rate(outpost) };
  const own = await runSteadily(product, slow, load);
  samples.product.calm.push(own);
  samples.product.same.push(own);
  samples.outpost.calm.push(await runSteadily(outpost, fast, load));
  samples.outpost.same.push(await runSteadily(outpost, slow, load));
}

async function killEach(
  system: System,
  count: number,
  load: Load,
  progress: Setting['progress'],
): Promise<Row[]> {
  const rows: Row[] = [];
  for (const part of system.parts) {
    const kill = await progress.during(`${system.name}: killing ${part}`, () =>
      killAmidBurst(system, { part, count }, load),
    );
    progress.line(`${part} killed: ${kill.lost} of ${count} lost, ${kill.doubled} doubled`);
    rows.push(...buildKillRows(system.name, part, kill));
  }
  return rows;
}
