"""Programs that no worker may run, and those of which it may not run some commands. Tables."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

PRIVILEGE: Final = "becomes another user, or gives a program more rights"
DISK: Final = "writes to disks or file systems as such"
MACHINE: Final = "changes or stops the machine"
SANDBOX: Final = "gets around the sandbox, or around what loop is told"
PUBLISH: Final = "publishes a package or an image"
INFRASTRUCTURE: Final = "destroys infrastructure"
DATABASE: Final = "destroys the data of a database"
HISTORY: Final = "rewrites history"
PUSH: Final = "pushes to another repository"
KEYS: Final = "reads key material"

_ALWAYS: Final = {
    PRIVILEGE: "sudo su doas pkexec runuser run0 sudoedit su-exec gosu setcap setpriv capsh "
    "usermod useradd userdel adduser deluser groupmod gpasswd passwd chpasswd visudo newuidmap "
    "newgidmap dzdo",
    DISK: "fdisk sfdisk cfdisk gdisk sgdisk parted wipefs blkdiscard hdparm lvremove vgremove "
    "pvremove lvreduce mdadm cryptsetup zpool badblocks mkswap swapoff swapon tune2fs resize2fs "
    "debugfs mke2fs losetup dmsetup nvme newfs diskutil",
    MACHINE: "shutdown reboot halt poweroff init telinit mount umount insmod modprobe rmmod kexec "
    "iptables ip6tables nft ufw firewall-cmd grub-install update-grub efibootmgr pivot_root",
    SANDBOX: "bwrap bubblewrap unshare nsenter firejail chroot proot fakechroot reptyr "
    "systemd-run systemd-nspawn machinectl lxc-attach newroot landrun",
    DATABASE: "dropdb dropuser",
    PUBLISH: "semantic-release goreleaser np release-it twine-upload",
    HISTORY: "git-filter-repo bfg git-filter-branch",
    PUSH: "git-push git-send-pack",
}
REFUSED: Final = {name: why for why, names in _ALWAYS.items() for name in names.split()}
"""Programs that are refused whatever they are given, and why."""

_PUBLISH: Final = (
    *("npm publish", "npm unpublish", "npm deprecate", "npm dist-tag", "npm owner", "npm token"),
    *("npm access", "pnpm publish", "yarn publish", "yarn npm publish", "bun publish"),
    *("twine upload", "twine register", "flit publish", "poetry publish", "uv publish"),
    *("hatch publish", "pdm publish", "maturin publish", "maturin upload", "cargo publish"),
    *("cargo yank", "cargo owner", "cargo release", "gem push", "gem yank", "gem owner"),
    *("docker push", "docker image push", "docker compose push", "docker manifest push"),
    *("podman push", "podman image push", "buildah push", "nerdctl push", "docker-compose push"),
    *("helm push", "mvn deploy", "mvn release:perform", "gradle publish", "gradlew publish"),
    *("dotnet nuget push", "nuget push", "nuget delete", "vsce publish", "ovsx publish"),
    *("lerna publish", "changeset publish", "anaconda upload", "pod trunk push", "mix hex.publish"),
    *("skopeo copy", "skopeo sync", "crane push", "crane copy", "oras push", "luarocks upload"),
    *("jsr publish", "deno publish", "wrangler publish", "dart pub publish", "flutter pub publish"),
    *(
        "lein deploy",
        "sbt publish",
        "stack upload",
        "cabal upload",
        "opam publish",
        "snapcraft upload",
    ),
    *("setup.py upload", "setup.py register", "npm stage-publish", "conda upload", "rake release"),
)
_DESTROYS: Final = (
    *("terraform destroy", "tofu destroy", "terragrunt destroy", "terragrunt run-all destroy"),
    *("terraform state rm", "tofu state rm", "terraform apply -destroy", "tofu apply -destroy"),
    *("terraform workspace delete", "pulumi destroy", "pulumi stack rm", "cdk destroy"),
    *("kubectl delete", "kubectl drain", "kubectl replace", "oc delete", "k delete"),
    *("helm delete", "helm uninstall", "eksctl delete", "kops delete", "kind delete"),
    *("minikube delete", "serverless remove", "sls remove", "sam delete", "copilot delete"),
    *("flyctl destroy", "fly destroy", "flyctl apps destroy", "fly apps destroy"),
    *("fly volumes destroy", "fly volumes delete", "heroku apps:destroy", "heroku pg:reset"),
    *("doctl delete", "vercel remove", "vercel rm", "netlify sites:delete", "firebase delete"),
    *(
        "gh repo delete",
        "gh release delete",
        "gh secret delete",
        "gh secret set",
        "glab repo delete",
    ),
    *("docker system prune", "docker volume rm", "docker volume prune", "podman system prune"),
    *("podman system reset", "podman volume rm", "docker swarm leave", "docker stack rm"),
    *("docker service rm", "nomad job stop", "consul kv delete", "vault delete", "vault kv delete"),
    *(
        "vault secrets disable",
        "etcdctl del",
        "zfs destroy",
        "gsutil rm",
        "gsutil rb",
        "mc rb",
        "mc rm",
    ),
    *(
        "rclone delete",
        "rclone purge",
        "s3cmd del",
        "s3cmd rb",
        "az group delete",
        "ibmcloud delete",
    ),
    *(
        "cf delete",
        "cf delete-org",
        "wrangler delete",
        "supabase projects delete",
        "linode-cli delete",
    ),
)
_DATA: Final = (
    *("mysqladmin drop", "rails db:drop", "rake db:drop", "rails db:reset", "rake db:reset"),
    *("prisma migrate reset", "manage.py flush", "manage.py reset_db", "artisan db:wipe"),
    *("artisan migrate:fresh", "redis-cli flushall", "redis-cli flushdb", "sequelize db:drop"),
    *("typeorm schema:drop", "supabase db reset", "influx delete"),
    *(
        "influx bucket delete",
        "cockroach drop",
        "dropDatabase",
        "mix ecto.drop",
        "django-admin flush",
    ),
)
_KEYS: Final = (
    *("gh auth token", "gcloud auth print-access-token", "gpg --export-secret-keys", "pass show"),
    *(
        "gpg --export-secret-key",
        "gpg --export-secret-subkeys",
        "op read",
        "op item",
        "security dump-keychain",
    ),
    *(
        "security find-generic-password",
        "security find-internet-password",
        "aws configure export-credentials",
    ),
    *("git credential fill", "git-credential fill", "keyring get", "secret-tool lookup"),
    *("az account get-access-token", "gcloud auth print-identity-token", "getent shadow"),
    *("kubectl get secret", "kubectl get secrets", "heroku auth:token"),
)
_MACHINE: Final = (
    *(
        "systemctl stop",
        "systemctl disable",
        "systemctl mask",
        "systemctl poweroff",
        "systemctl start",
    ),
    *(
        "systemctl reboot",
        "systemctl halt",
        "systemctl isolate",
        "systemctl kill",
        "systemctl enable",
    ),
    *("sysctl -w", "launchctl unload", "launchctl bootout", "crontab -r", "crontab -", "ip link"),
)
_SANDBOX: Final = (
    *("loop answer", "loop land", "loop clean", "loop resume", "loop run"),
    *("strace -p", "strace --attach", "ltrace -p", "gdb -p", "gdb --pid", "gdb attach", "lldb -p"),
    *("loop --no-sandbox", "hash -p", "enable -f", "docker --privileged", "podman --privileged"),
)
_PUSH: Final = (
    "hg push",
    "svn commit",
    "svn ci",
    "jj git push",
    "sl push",
    "bzr push",
    "fossil push",
)
_PARTS: Final[tuple[tuple[str, Sequence[str]], ...]] = (
    (PUBLISH, _PUBLISH),
    (INFRASTRUCTURE, _DESTROYS),
    (DATABASE, _DATA),
    (KEYS, _KEYS),
    (MACHINE, _MACHINE),
    (SANDBOX, _SANDBOX),
    (PUSH, _PUSH),
)


def _table() -> Mapping[str, list[tuple[tuple[str, ...], str]]]:
    found: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for why, entries in _PARTS:
        for entry in entries:
            name, *words = entry.split()
            found.setdefault(name, []).append((tuple(words), why))
    return found


SOME: Final = _table()
"""Programs by name, with the words that are refused where they come in that order."""

_CLOUDS: Final = frozenset(
    {"aws", "gcloud", "az", "doctl", "flyctl", "fly", "heroku", "ibmcloud", "oci", "scw", "hcloud"}
)
_CLOUD_WORD: Final = re.compile(
    r"(?:\w+[:-])*(?:delete|terminate|destroy|purge|rb|rm|remove|deregister)(?:[-:].*)?"
)
_REHEARSED: Final = frozenset({"npm", "pnpm", "yarn", "cargo", "poetry", "bun", "uv", "flit"})
_NAMED: Final = (
    (re.compile(r"mkfs(?:\..*)?|mkntfs|mkdosfs|mkreiserfs"), DISK),
    (re.compile(r"sudo(?:-rs|-.*)?"), PRIVILEGE),
)


def refused_name(name: str) -> str:
    """Return why a program may not be run at all; empty where it may."""
    found = REFUSED.get(name, "")
    return found or next((why for pattern, why in _NAMED if pattern.fullmatch(name)), "")


def refused_words(name: str, words: Sequence[str]) -> str:
    """Return why a program may not be run with these words; empty where it may."""
    if name in _REHEARSED and "--dry-run" in words:
        return ""
    if name in _CLOUDS and any(_CLOUD_WORD.fullmatch(word) for word in words):
        return INFRASTRUCTURE
    lowered = tuple(word.lower() for word in words)
    for wanted, why in SOME.get(name, ()):
        if _in_order(wanted, lowered):
            return why
    return ""


def _in_order(wanted: Sequence[str], words: Sequence[str]) -> bool:
    """Return whether the wanted words are the first ones that are no options' values, in order.

    What stands between may be options and their values, so a word is looked for within reach.
    """
    if not wanted:
        return False
    at = 0
    for one in wanted:
        reach = [
            index
            for index, word in enumerate(words[at:], at)
            if word == one or (one.startswith("-") and word.startswith(f"{one}="))
        ]
        place = next((i for i in reach if one.startswith("-") or _is_command(words, at, i)), None)
        if place is None:
            return False
        at = place + (0 if one.startswith("-") else 1)
    return True


def _is_command(words: Sequence[str], begin: int, place: int) -> bool:
    """Return whether nothing but options, and a value of each, stands before a word."""
    was_option = False
    for word in words[begin:place]:
        is_option = word.startswith(("-", "+"))
        if not is_option and not was_option:
            return False
        was_option = is_option
    return True
