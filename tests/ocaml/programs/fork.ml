(* Children that allocate, exit in several ways, and outlive or precede their parent. *)

let allocate n =
  let l = ref [] in
  for i = 1 to n do
    l := (i, i) :: !l
  done;
  List.length (Sys.opaque_identity !l)

let child n = function
  | `Exit code ->
      ignore (allocate n);
      exit code
  | `Quick code ->
      ignore (allocate n);
      Unix._exit code
  | `Signal ->
      ignore (allocate n);
      Unix.kill (Unix.getpid ()) Sys.sigkill;
      exit 0

let () =
  Printf.printf "parent %d\n%!" (allocate 100_000);
  let ways = [ `Exit 3; `Quick 4; `Signal; `Exit 0 ] in
  let wait way =
    match Unix.fork () with
    | 0 -> child 50_000 way
    | pid -> (
        match snd (Unix.waitpid [] pid) with
        | Unix.WEXITED n -> Printf.printf "child exits %d\n%!" n
        | Unix.WSIGNALED n -> Printf.printf "child killed %b\n%!" (n = Sys.sigkill)
        | Unix.WSTOPPED _ -> assert false)
  in
  List.iter wait ways;
  Printf.printf "parent %d\n" (allocate 100_000)
