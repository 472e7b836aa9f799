// Starts `relax-lsp-server` for files of MLIR text.
const { workspace } = require("vscode");
const { LanguageClient, TransportKind } = require("vscode-languageclient/node");

let client;

function activate() {
  const folder = workspace.workspaceFolders?.[0]?.uri.fsPath ?? "";
  const command = workspace
    .getConfiguration("xdsl-relax")
    .get("server")
    .replace("${workspaceFolder}", folder);
  client = new LanguageClient(
    "xdsl-relax",
    "xdsl-relax",
    { command, transport: TransportKind.stdio },
    { documentSelector: [{ language: "mlir" }] }
  );
  return client.start();
}

function deactivate() {
  return client?.stop();
}

module.exports = { activate, deactivate };
