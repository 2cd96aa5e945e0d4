// Imported first, since other modules may not even load on an older Node.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
// These versions load ES modules by `require`.
const isRecent = (major === 20 && minor >= 19) || (major === 22 && minor >= 12) || major > 22;
if (!isRecent) {
  process.stderr.write(
    `This needs Node 24 and runs on ${process.versions.node} (${process.execPath}).\n` +
      'Install Node 24 (nodejs.org), or switch to it: nvm install 24\n',
  );
  process.exit(1);
}
