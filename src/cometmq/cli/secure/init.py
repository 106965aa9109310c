"""``cometmq init``: options, and what is printed."""

from __future__ import annotations

import datetime
from pathlib import Path

import click

from cometmq.base.errors import UsageError
from cometmq.cli.client_command import exit_codes


@click.command(short_help="Write certificates, accounts and settings for a secure cluster.")
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME|ADDRESS",
    help="How clients reach the servers; may be repeated. The first is the one that they are told. Default: 127.0.0.1.",
)
@click.option("--namesrv-port", default=9876, show_default=True, help="Port of the name server.")
@click.option("--broker-port", default=10911, show_default=True, help="Port of the broker.")
@click.option("--cluster", default="DefaultCluster", show_default=True, help="Name of the cluster.")
@click.option("--broker-name", default="broker-a", show_default=True, help="Name of the broker.")
@click.option("--certificate", help="Certificate chain of the servers, PEM, of your own authority.")
@click.option("--key", help="Its private key, PEM, without a password.")
@click.option("--ca", "authority", help="The authority that issued it, PEM.")
@click.option(
    "--renew",
    "is_renewal",
    is_flag=True,
    help="Only issue a new certificate for the servers, by the authority in the directory.",
)
def init(
    *,
    directory: Path,
    hosts: tuple[str, ...],
    namesrv_port: int,
    broker_port: int,
    cluster: str,
    broker_name: str,
    certificate: str | None,
    key: str | None,
    authority: str | None,
    is_renewal: bool,
) -> None:
    """Make a set-up with TLS and accounts in DIRECTORY: certificates, accounts, and configuration files.

    The operator's secret is printed once and is in no file in plain text. Nothing is overwritten.

    \b
      namesrv.conf, broker.conf   for mqnamesrv -c and mqbroker -c
      tls.properties              TLS of both
      tools.conf                  for the operator's commands, such as cometmq doctor -c
      client.conf, spark.conf     for programs, cometmq produce and consume -c, and Spark
      ca.pem, ca.key              the authority; keep the key elsewhere
      server.pem, server.key      the certificate of the servers
      data                        of the servers, with the accounts

    \b
    Exit code: 0 done; 1 a file could not be written; 2 a wrong option, or the directory has a set-up already.

    \b
    Examples:
      cometmq init ./secure --host 192.0.2.10
      cometmq init ./secure --host queue.example.com --certificate chain.pem --key key.pem --ca ca.pem
      cometmq init ./secure --renew
    """
    with exit_codes("cometmq init"):
        from cometmq.cli.secure.first_accounts import CLIENT, OPERATOR, SERVERS, SPARK, new_secret
        from cometmq.cli.secure.set_up import SetUp
        from cometmq.cli.secure.write import Given, renew, write

        now = datetime.datetime.now(datetime.UTC)
        directory = directory.absolute()
        if is_renewal:
            if certificate or key or authority:
                raise UsageError(
                    "--renew is for the authority in the directory: leave out --ca, --certificate, --key"
                )
            renewed = renew(directory, hosts, now)
            click.echo(f"a new certificate for {', '.join(renewed)} is in {directory}")
            return
        given = None
        if certificate or key or authority:
            if not (certificate and key and authority):
                raise UsageError("give --certificate, --key and --ca together")
            given = Given(certificate, key, authority)
        secret_of = {name: new_secret() for name in (OPERATOR, SERVERS, CLIENT, SPARK)}
        set_up = SetUp(
            directory=directory,
            hosts=hosts or ("127.0.0.1",),
            namesrv_port=namesrv_port,
            broker_port=broker_port,
            cluster=cluster,
            broker_name=broker_name,
            secret_of=secret_of,
        )
        write(set_up, given, now)
        click.echo(
            f"written       {directory}\n"
            f"operator      {OPERATOR}\n"
            f"secret        {secret_of[OPERATOR]}   (shown once: no file has it in plain text)\n"
            f"name server   mqnamesrv -c {directory / 'namesrv.conf'}\n"
            f"broker        mqbroker -c {directory / 'broker.conf'}\n"
            f"look at it    COMETMQ_SECRET_KEY=... cometmq doctor -c {directory / 'tools.conf'}\n"
            f"send          echo hello | cometmq produce -c {directory / 'client.conf'} -t Orders\n"
            "other hosts   need client.conf and ca.pem"
        )
        if given is None:
            click.echo("authority     keep ca.key elsewhere: whoever has it can pass for a server")
