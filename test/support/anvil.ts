import { chmodSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { OperationalError } from '../../src/base/errors';
import { omitUndefined } from '../../src/domain/defined';
import { needTool, runCommand } from '../../stack/provision/command';
import { checkHash, hashFile, PLATFORM, unpackTar } from '../../stack/provision/download';
import type { Server } from '../../stack/provision/provision';

const VERSION = '1.7.1';
const EXECUTABLE = 'anvil';

/** Packages of npm by platform, each with the SHA-256 of its archive, and of Anvil in it. */
const PACKAGES: Partial<Record<string, { name: string; sha256: string; executable: string }>> = {
  'linux-x64': {
    name: '@foundry-rs/anvil-linux-amd64',
    sha256: '5727dd8f08f3bf6dde4ec1d9832e87c43f9315ef824bff1ab18486bf51bc7af3',
    executable: '10c1c727d6c1de973aeb160e59875b9a9a23464d6e74149ee8abb30b3500311b',
  },
};

const PackOutput = z.tuple([z.object({ filename: z.string() })]);
const ALL = { recursive: true, force: true };

export const anvil: Server = {
  name: 'Anvil',
  // One on PATH might have another version.
  installed: async () => undefined,
  routes: [
    {
      name: `Anvil ${VERSION} from npm`,
      folder: `anvil-${VERSION}-${PLATFORM}`,
      executable: EXECUTABLE,
      ...omitUndefined({ sha256: PACKAGES[PLATFORM]?.executable }),
      megabytes: 200,
      async fetch(folder, task, { env, signal }) {
        const npmPackage = PACKAGES[PLATFORM];
        if (npmPackage === undefined) {
          throw new OperationalError(`no archive for ${PLATFORM} is known by its SHA-256`);
        }
        const npm = needTool('npm');
        const options = { cwd: folder, env, signal, timeoutMs: 180_000 };
        task.say('fetching with npm');
        const spec = `${npmPackage.name}@${VERSION}`;
        const output = await runCommand(npm, ['pack', '--json', '--loglevel=error', spec], options);
        const [{ filename }] = PackOutput.parse(JSON.parse(output));
        const archive = join(folder, filename);
        checkHash(await hashFile(archive), { url: spec, sha256: npmPackage.sha256 });
        await unpackTar(archive, folder, signal);
        await rename(join(folder, 'package', 'bin', EXECUTABLE), join(folder, EXECUTABLE));
        await Promise.all([archive, join(folder, 'package')].map((path) => rm(path, ALL)));
        chmodSync(join(folder, EXECUTABLE), 0o755);
        await runCommand(join(folder, EXECUTABLE), ['--version'], { timeoutMs: 10_000, signal });
      },
    },
  ],
  help: ['let npm reach a registry that has the package @foundry-rs/anvil-linux-amd64'],
};
